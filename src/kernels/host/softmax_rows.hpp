// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over rows of logits.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// A stored element in the type it is computed in, and back, as the vectors do it.
template <class T>
TESSERA_HD Compute<T> load_one(const T* p) {
  return load(p, Part{1})[0];
}
template <class T>
TESSERA_HD void store_one(T* p, Compute<T> value) {
  store(p, VecOf<T>{} + value, Part{1});
}

template <class T>
void row_max(Rows<const T> logits, Compute<T>* max, Extent extent) {
  using V = VecOf<T>;
  using C = Compute<T>;
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    const T* x = row_of(logits, row);
    V best = V{} - C(__builtin_inf());
    auto nan = best != best;
    std::int64_t i = 0;
    for (; i + lanes<T> <= extent.width; i += lanes<T>) {
      const V v = load(x + i, Whole{});
      best = larger(v, best);
      nan |= v != v;
    }
    C result = fold_max(best);
    bool any_nan = any(nan);
    for (; i < extent.width; ++i) {
      const C v = load_one(x + i);
      result = v > result ? v : result;
      any_nan |= v != v;
    }
    max[row] = any_nan ? C(__builtin_nan("")) : result;
  }
}

/// exp's sum in chunks of f32 that are added in double, so that long vocabularies lose nothing.
template <class T>
TESSERA_HD double sum_of_exponentials(const T* x, Compute<T> max, std::int64_t width) {
  constexpr std::int64_t chunk = 64 * lanes<T>;
  const VecOf<T> zero{};
  double total = 0;
  for (std::int64_t begin = 0; begin < width; begin += chunk) {
    const std::int64_t size = width - begin < chunk ? width - begin : chunk;
    const std::int64_t whole = size - size % lanes<T>;
    total += double(fold(sum_vectors<T>(whole, [&](std::int64_t i, auto part) {
      return exponential(load(x + begin + i, part) - (zero + max));
    })));
    for (std::int64_t i = whole; i < size; ++i)
      total += exponential(zero + (load_one(x + begin + i) - max))[0];
  }
  return total;
}

template <class T>
void sum_exp(Rows<const T> logits, const Compute<T>* max, RowLabels labels, Compute<T>* sum,
             Compute<T>* target, Extent extent) {
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    const T* x = row_of(logits, row);
    sum[row] = Compute<T>(sum_of_exponentials(x, max[row], extent.width));
    const std::int64_t column = labels.labels[row] - labels.vocab_begin;
    const bool here = labels.labels[row] != ignored_row && column >= 0 && column < extent.width;
    target[row] = here ? load_one(x + column) - max[row] : 0;
  }
}

template <class T>
void softmax_gradient(Rows<T> logits, const Compute<T>* max, const Compute<T>* sum,
                      RowLabels labels, Compute<T> scale, Extent extent) {
  using V = VecOf<T>;
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    T* x = row_of(logits, row);
    if (labels.labels[row] == ignored_row) {
      __builtin_memset(x, 0, sizeof(T) * extent.width);
      continue;
    }
    const Compute<T> factor = scale / sum[row];
    const auto gradient = [&](V v) { return exponential(v - max[row]) * factor; };
    const std::int64_t column = labels.labels[row] - labels.vocab_begin;
    const bool here = column >= 0 && column < extent.width;
    const Compute<T> at_label = here ? gradient(V{} + load_one(x + column))[0] - scale : 0;
    for_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      store(x + i, gradient(load(x + i, part)), part);
    });
    if (here) store_one(x + column, at_label);
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
