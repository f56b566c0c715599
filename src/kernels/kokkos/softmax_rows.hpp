// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy: team policies, one team for each row of logits.
#pragma once

#include "kokkos/loops.hpp"

namespace tessera::kernels::kokkos {

/// Integers that order numbers as their values do, with NaN above all.
template <class C>
struct OrderedBits {
  using Bits = typename ElementOf<C>::Bits;
  static constexpr Bits nan = std::numeric_limits<Bits>::max();
  static TESSERA_HD Bits of(C v) {
    const Bits bits = bits_as<Bits>(v), ordered = bits < 0 ? bits ^ nan : bits;
    return v != v ? nan : ordered;
  }
  static TESSERA_HD C value(Bits bits) {
    return bits == nan ? C(__builtin_nan("")) : bits_as<C>(bits < 0 ? Bits(bits ^ nan) : bits);
  }
};

template <class T>
void row_max(Rows<const T> logits, Compute<T>* max, Extent extent) {
  using Order = OrderedBits<Compute<T>>;
  using Bits = typename Order::Bits;
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        const T* const x = logits.data + row * logits.stride;
        Bits largest = std::numeric_limits<Bits>::min();
        Kokkos::parallel_reduce(
            Kokkos::TeamVectorRange(team, extent.width),
            [=](std::int64_t i, Bits& best) {
              const Bits bits = Order::of(wide(x[i]));
              best = bits > best ? bits : best;
            },
            Kokkos::Max<Bits>(largest));
        Kokkos::single(Kokkos::PerTeam(team), [=] { max[row] = Order::value(largest); });
      });
}

template <class T>
void sum_exp(Rows<const T> logits, const Compute<T>* max, RowLabels labels, Compute<T>* sum,
             Compute<T>* target, Extent extent) {
  using C = Compute<T>;
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        const T* const x = logits.data + row * logits.stride;
        const C m = max[row];
        const double total = sum_of_columns<C>(
            team, extent.width, [=](std::int64_t i) { return exponential(wide(x[i]) - m); });
        const std::int64_t column = labels.labels[row] - labels.vocab_begin;
        const bool here = labels.labels[row] != ignored_row && column >= 0 && column < extent.width;
        Kokkos::single(Kokkos::PerTeam(team), [=] {
          sum[row] = C(total);
          target[row] = here ? wide(x[column]) - m : C(0);
        });
      });
}

template <class T>
void softmax_gradient(Rows<T> logits, const Compute<T>* max, const Compute<T>* sum,
                      RowLabels labels, Compute<T> scale, Extent extent) {
  using C = Compute<T>;
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        T* const x = logits.data + row * logits.stride;
        const bool counts = labels.labels[row] != ignored_row;
        const std::int64_t column = labels.labels[row] - labels.vocab_begin;
        const C m = max[row], factor = scale / sum[row];
        for_columns(team, 0, extent.width, [=](std::int64_t i) {
          const C softmax = exponential(wide(x[i]) - m) * factor;
          x[i] = narrow<T>(!counts ? C(0) : i == column ? softmax - scale : softmax);
        });
      });
}

}  // namespace tessera::kernels::kokkos
