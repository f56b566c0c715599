// SPDX-License-Identifier: Apache-2.0
// What the host's attention works on: the query heads that share one key-value head of a sequence.
// No library code in here: see row_types.hpp.
#pragma once

#include "row_types.hpp"

namespace tessera::kernels {

struct AttentionShape {
  std::int64_t queries, keys, group, head_dim, value_dim;
  double scale;
  bool causal;                ///< query i sees keys 0..i
  const unsigned char* mask;  ///< [queries, keys], 1 = visible; null = all
};

/// Queries that are worked on together, and keys. Their scores stay in the cache of a core.
inline constexpr std::int64_t attention_queries = 48, attention_keys = 256;
/// From one query's scores to the next: no power of two, so that a column of scores is not in a few
/// sets of the cache.
inline constexpr std::int64_t score_stride = attention_keys + 16;

/// Rows of a tensor for each head of the group, `head` elements apart.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride, head;
};

/// Queries [first, last), which begin at a multiple of attention_queries.
struct QueryRange {
  std::int64_t first, last;
};

template <class T>
struct AttentionInputs {
  HeadRows<const T> q;
  Rows<const T> k, v;
};

template <class T>
struct AttentionOutputs {
  HeadRows<T> out;
  HeadRows<Compute<T>> logsumexp;  ///< one element a row
};

/// What backward reads beside the inputs.
template <class T>
struct AttentionMerged {
  HeadRows<const T> out, grad_out;
  HeadRows<const Compute<T>> logsumexp;
};

/// `width` rounded up to whole vectors of every instruction set.
constexpr std::int64_t padded(std::int64_t width) { return (width + 15) / 16 * 16; }

/// Elements of the sums of dk [keys, padded(head_dim)] and, behind them, dv [keys,
/// padded(value_dim)].
constexpr std::int64_t key_gradient_size(const AttentionShape& s) {
  return s.keys * (padded(s.head_dim) + padded(s.value_dim));
}

/// Elements of scratch that one call needs: keys and values in rows and in columns, the queries of
/// the range with their gradients, and two blocks of scores.
constexpr std::int64_t attention_scratch_size(const AttentionShape& s, std::int64_t queries) {
  const std::int64_t widths = padded(s.head_dim) + padded(s.value_dim);
  return 2 * padded(s.keys) * widths + padded(queries) * (2 * widths + 2) +
         attention_queries * (widths + 2 * score_stride);
}

/// Attention of one key-value head. Scratch begins at a multiple of 64 bytes.
template <class T>
struct AttentionFunctions {
  using C = Compute<T>;
  void (*forward)(const AttentionShape& shape, const AttentionInputs<T>& inputs, QueryRange range,
                  const AttentionOutputs<T>& outputs, C* scratch);
  /// Writes dq of these queries, and adds to key_gradient_size(shape) `key_gradients`.
  void (*backward)(const AttentionShape& shape, const AttentionInputs<T>& inputs, QueryRange range,
                   const AttentionMerged<T>& merged, HeadRows<T> dq, C* key_gradients, C* scratch);
  /// dk and dv from `parts` sums, one after the other, added in their order.
  void (*store)(const AttentionShape& shape, const C* key_gradients, std::int64_t parts, Rows<T> dk,
                Rows<T> dv);
};

}  // namespace tessera::kernels
