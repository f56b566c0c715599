// SPDX-License-Identifier: Apache-2.0
// Gradients of the attention of one key-value head (Dao et al. 2022, arXiv:2205.14135): with
// P = exp(S - L) and D = rowsum(dO O), dS = P (dO V^T - D).
#pragma once

#include "host/attention_blocks.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// The keys and values of the head: rows [keys, padded(head_dim)] and columns [width,
/// padded(keys)], and the sums of their gradients.
template <class C>
struct KeySide {
  C *rows, *columns, *value_columns, *dk, *dv;
};

/// The queries of the range, in rows: q is scaled, and dq is not yet.
template <class C>
struct QuerySide {
  C *q, *grad_out, *dq, *dot, *logsumexp;
};

/// Scores and their gradients in place: weights P = exp(scores - logsumexp) and dS = P (dP - dot).
template <class C>
void weigh(std::int64_t columns, C logsumexp, C dot, C* scores, C* gradients) {
  using V = VecOf<C>;
  for (std::int64_t i = 0; i < columns; i += lanes<C>) {
    const V weight = bounded_exponential(load(scores + i, Whole{}) - logsumexp);
    store(scores + i, weight, Whole{});
    store(gradients + i, weight * (load(gradients + i, Whole{}) - dot), Whole{});
  }
}

template <class T>
void load_queries(const AttentionShape& s, HeadRows<const T> q, QueryRange range,
                  const AttentionMerged<T>& merged, std::int64_t head,
                  const QuerySide<Compute<T>>& to) {
  const std::int64_t count = range.last - range.first;
  widen_rows<T>(rows_at(q, head, range.first), count, s.head_dim, Compute<T>(s.scale), to.q);
  widen_rows<T>(rows_at(merged.grad_out, head, range.first), count, s.value_dim, 1, to.grad_out);
  clear(to.dq, count * padded(s.head_dim));
  for (std::int64_t row = 0; row < count; ++row) {
    prefetch(rows_at(merged.out, head, range.first), row, count);
    const T* const o = rows_at(merged.out, head, range.first + row).data;
    const T* const d = rows_at(merged.grad_out, head, range.first + row).data;
    to.dot[row] = fold(sum_vectors<T>(s.value_dim, [o, d](std::int64_t i, auto part) {
      return load(o + i, part) * load(d + i, part);
    }));
    to.logsumexp[row] = *rows_at(merged.logsumexp, head, range.first + row).data;
  }
}

/// Adds a block's part to dq, dk and dv. `row` is the block's first query in `queries`; scores and
/// gradients are scratch for a block each.
template <class C>
void add_gradients(const AttentionShape& s, const Block& block, const KeySide<C>& keys,
                   const QuerySide<C>& queries, std::int64_t row, C* scores, C* gradients) {
  const std::int64_t width = padded(s.head_dim), value_width = padded(s.value_dim);
  const C *const q = queries.q + row * width, *const grad_out =
                                                  queries.grad_out + row * value_width;
  scores_of(s, block, q, keys.columns, s.head_dim, scores);
  hide(s, block, scores);
  scores_of(s, block, grad_out, keys.value_columns, s.value_dim, gradients);
  for (std::int64_t i = 0; i < block.queries; ++i)
    weigh(padded(block.keys), queries.logsumexp[row + i], queries.dot[row + i],
          scores + i * score_stride, gradients + i * score_stride);
  multiply<Sums::go_on, C>(block.keys, value_width, block.queries, {scores, 1, score_stride},
                           {grad_out, value_width},
                           {keys.dv + block.key * value_width, value_width});
  multiply<Sums::go_on, C>(block.keys, width, block.queries, {gradients, 1, score_stride},
                           {q, width}, {keys.dk + block.key * width, width});
  multiply<Sums::go_on, C>(block.queries, width, block.keys, {gradients, score_stride, 1},
                           {keys.rows + block.key * width, width},
                           {queries.dq + row * width, width});
}

/// The keys of a block, and the sums of their gradients, stay in the cache while the queries pass.
template <class T>
void attention_backward(const AttentionShape& s, const AttentionInputs<T>& inputs, QueryRange range,
                        const AttentionMerged<T>& merged, HeadRows<T> dq, Compute<T>* key_gradients,
                        Compute<T>* scratch_data) {
  using C = Compute<T>;
  const std::int64_t width = padded(s.head_dim), value_width = padded(s.value_dim),
                     count = range.last - range.first;
  Scratch<C> scratch(scratch_data);
  const KeySide<C> keys{scratch.take(s.keys * width), scratch.take(padded(s.keys) * width),
                        scratch.take(padded(s.keys) * value_width), key_gradients,
                        key_gradients + s.keys * width};
  widen_columns<T>(inputs.k, s.keys, s.head_dim, keys.rows, keys.columns);
  widen_columns<T>(inputs.v, s.keys, s.value_dim, scratch.take(s.keys * value_width),
                   keys.value_columns);
  const QuerySide<C> queries{scratch.take(count * width), scratch.take(count * value_width),
                             scratch.take(count * width), scratch.take(count), scratch.take(count)};
  C* const scores = scratch.take(attention_queries * score_stride);
  C* const gradients = scratch.take(attention_queries * score_stride);
  for (std::int64_t head = 0; head < s.group; ++head) {
    load_queries(s, inputs.q, range, merged, head, queries);
    for (std::int64_t key = 0; key < s.keys; key += attention_keys)
      for (std::int64_t query = range.first; query < range.last; query += attention_queries) {
        const Block block = block_at(s, query, range.last, key);
        if (sees(s, block))
          add_gradients(s, block, keys, queries, query - range.first, scores, gradients);
      }
    for (std::int64_t row = 0; row < count; ++row) {
      prefetch(rows_at(dq, head, range.first), row, count);
      store_row(rows_at(dq, head, range.first + row).data, queries.dq + row * width, s.head_dim,
                C(s.scale));
    }
  }
}

/// destination [rows, width] = the sum of `parts` sources [rows, padded(width)], `part` apart.
template <class T>
void add_parts(const Compute<T>* source, std::int64_t parts, std::int64_t part, std::int64_t rows,
               std::int64_t width, Rows<T> destination) {
  for (std::int64_t row = 0; row < rows; ++row) {
    prefetch(destination, row, rows);
    for_vectors<T>(width, [&, from = source + row * padded(width), to = row_of(destination, row)](
                              std::int64_t i, auto lanes_here) {
      auto sum = load(from + i, lanes_here);
      for (std::int64_t k = 1; k < parts; ++k) sum += load(from + k * part + i, lanes_here);
      store(to + i, sum, lanes_here);
    });
  }
}

template <class T>
void attention_store(const AttentionShape& s, const Compute<T>* key_gradients, std::int64_t parts,
                     Rows<T> dk, Rows<T> dv) {
  const std::int64_t part = key_gradient_size(s);
  add_parts<T>(key_gradients, parts, part, s.keys, s.head_dim, dk);
  add_parts<T>(key_gradients + s.keys * padded(s.head_dim), parts, part, s.keys, s.value_dim, dv);
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
