// SPDX-License-Identifier: Apache-2.0
// Attention of the query heads of one key-value head, a block of scores at a time (Dao et al. 2022,
// arXiv:2205.14135; the online softmax of Milakov and Gimelshein 2018, arXiv:1805.02867).
#pragma once

#include "host/attention_blocks.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// What the softmax of a query has seen.
template <class C>
struct Seen {
  C largest, sum;
};

/// scores -> exp(score - largest); scales what was summed before.
template <class C>
void soften(std::int64_t columns, std::int64_t width, C* scores, Seen<C>& seen, C* out) {
  using V = VecOf<C>;
  V largest = broadcast(seen.largest);
  for (std::int64_t i = 0; i < columns; i += lanes<C>)
    largest = larger(load(scores + i, Whole{}), largest);
  const C top = fold_max(largest);
  if (top == invisible<C>) {  // no key so far
    clear(scores, columns);
    return;
  }
  const V base = broadcast(top);
  V sum{};
  for (std::int64_t i = 0; i < columns; i += lanes<C>) {
    const V weight = bounded_exponential(load(scores + i, Whole{}) - base);
    store(scores + i, weight, Whole{});
    sum += weight;
  }
  if (seen.largest == invisible<C>) {  // nothing was summed before
    seen = {top, fold(sum)};
    return;
  }
  const C factor = bounded_exponential(seen.largest - top);
  seen = {top, seen.sum * factor + fold(sum)};
  if (factor == 1) return;
  for (std::int64_t i = 0; i < width; i += lanes<C>)
    store(out + i, load(out + i, Whole{}) * factor, Whole{});
}

template <class T>
void attention_forward(const AttentionShape& s, const AttentionInputs<T>& inputs, QueryRange range,
                       const AttentionOutputs<T>& outputs, Compute<T>* scratch_data) {
  using C = Compute<T>;
  const std::int64_t width = padded(s.value_dim);
  Scratch<C> scratch(scratch_data);
  C *const keys = scratch.take(padded(s.head_dim) * padded(s.keys)), *const values = scratch.take(
                                                                         s.keys * width);
  C *const q = scratch.take(attention_queries * padded(s.head_dim)),
           *const out = scratch.take(attention_queries * width),
           *const scores = scratch.take(attention_queries * score_stride);
  C* const rows_of_keys = scratch.take(s.keys * padded(s.head_dim));
  widen_columns<T>(inputs.k, s.keys, s.head_dim, rows_of_keys, keys);
  widen_rows<T>(inputs.v, s.keys, s.value_dim, 1, values);
  for (std::int64_t head = 0; head < s.group; ++head)
    for (std::int64_t query = range.first; query < range.last; query += attention_queries) {
      const std::int64_t left = range.last - query,
                         queries = left < attention_queries ? left : attention_queries;
      widen_rows<T>(rows_at(inputs.q, head, query), queries, s.head_dim, C(s.scale), q);
      Seen<C> seen[attention_queries];
      for (std::int64_t row = 0; row < queries; ++row) seen[row] = {invisible<C>, 0};
      clear(out, queries * width);
      for (std::int64_t key = 0; key < s.keys; key += attention_keys) {
        const Block block = block_at(s, query, range.last, key);
        if (!sees(s, block)) continue;
        scores_of(s, block, q, keys, s.head_dim, scores);
        hide(s, block, scores);
        for (std::int64_t row = 0; row < queries; ++row)
          soften(padded(block.keys), width, scores + row * score_stride, seen[row],
                 out + row * width);
        multiply<Sums::go_on, C>(queries, width, block.keys, {scores, score_stride, 1},
                                 {values + block.key * width, width}, {out, width});
      }
      for (std::int64_t row = 0; row < queries; ++row) {
        prefetch(rows_at(outputs.out, head, query), row, queries);
        store_row(rows_at(outputs.out, head, query + row).data, out + row * width, s.value_dim,
                  1 / seen[row].sum);
        *rows_at(outputs.logsumexp, head, query + row).data =
            seen[row].largest + C(__builtin_log(double(seen[row].sum)));
      }
    }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
