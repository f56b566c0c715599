// SPDX-License-Identifier: Apache-2.0
// Blocks of attention's scores: which keys a query sees, and the products of queries and keys.
#pragma once

#include "host/attention_shape.hpp"
#include "host/small_products.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// Below every score; its exponential is 0.
template <class C>
inline constexpr C invisible = C(-__builtin_inf());

/// Hands out pieces of one array.
template <class C>
class Scratch {
 public:
  explicit Scratch(C* data) : data_(data) {}
  C* take(std::int64_t count) {
    C* const taken = data_;
    data_ += padded(count);
    return taken;
  }

 private:
  C* data_;
};

template <class T>
Rows<T> rows_at(const HeadRows<T>& rows, std::int64_t head, std::int64_t first) {
  return {rows.data + head * rows.head + first * rows.stride, rows.stride};
}

/// Whole vectors of zeros.
template <class C>
void clear(C* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += lanes<C>) store(data + i, VecOf<C>{}, Whole{});
}

template <class T>
inline constexpr bool is_const = false;
template <class T>
inline constexpr bool is_const<const T> = true;

/// Asks for the beginning of a row that is needed soon: rows of a head are too far apart for the
/// processor to guess. It can wait for about as many of them at a time.
template <class T>
TESSERA_HD void prefetch(Rows<T> of, std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t ahead = 12;
  if (row + ahead < rows) __builtin_prefetch(row_of(of, row + ahead), !is_const<T>);
}

/// destination [width] = source * factor.
template <class T>
void store_row(T* destination, const Compute<T>* source, std::int64_t width, Compute<T> factor) {
  for_vectors<T>(width, [=](std::int64_t i, auto part) {
    store(destination + i, load(source + i, part) * factor, part);
  });
}

/// destination [rows, padded(width)] = source * factor, zeros behind the width.
template <class T>
void widen_rows(Rows<const T> source, std::int64_t rows, std::int64_t width, Compute<T> factor,
                Compute<T>* destination) {
  for (std::int64_t row = 0; row < rows; ++row) {
    prefetch(source, row, rows);
    Compute<T>* const to = destination + row * padded(width);
    for_vectors<T>(width, [from = row_of(source, row), to, factor](std::int64_t i, auto part) {
      store(to + i, load(from + i, part) * factor, part);
    });
    for (std::int64_t i = width; i < padded(width); ++i) to[i] = 0;
  }
}

/// The source as widened [rows, padded(width)] and as columns [width, padded(rows)], zeros behind
/// the rows.
template <class T>
void widen_columns(Rows<const T> source, std::int64_t rows, std::int64_t width, Compute<T>* widened,
                   Compute<T>* columns) {
  widen_rows<T>(source, rows, width, 1, widened);
  const std::int64_t stride = padded(width);
  for (std::int64_t i = 0; i < width; ++i) {
    Compute<T>* const to = columns + i * padded(rows);
    for (std::int64_t row = 0; row < rows; ++row) to[row] = widened[row * stride + i];
    for (std::int64_t row = rows; row < padded(rows); ++row) to[row] = 0;
  }
}

/// A block of scores: queries [query, query + queries) and keys [key, key + keys).
struct Block {
  std::int64_t query, queries, key, keys;
};

/// The block that begins at (query, key); no keys where none of these queries sees one of them.
inline Block block_at(const AttentionShape& s, std::int64_t query, std::int64_t last_query,
                      std::int64_t key) {
  const std::int64_t left = last_query - query;
  Block block{query, left < attention_queries ? left : attention_queries, key, 0};
  const std::int64_t end = s.causal ? query + block.queries : s.keys;
  const std::int64_t keys = end - key < attention_keys ? end - key : attention_keys;
  block.keys = keys < 0 ? 0 : keys;
  return block;
}

/// Whether a query of the block sees one of its keys.
inline bool sees(const AttentionShape& s, const Block& block) {
  if (s.mask == nullptr) return block.keys > 0;
  for (std::int64_t row = 0; row < block.queries; ++row)
    if (__builtin_memchr(s.mask + (block.query + row) * s.keys + block.key, 1,
                         static_cast<std::size_t>(block.keys)) != nullptr)
      return true;
  return false;
}

/// The scores that a query does not see, and those behind the keys, become `invisible`.
template <class C>
void hide(const AttentionShape& s, const Block& block, C* scores) {
  for (std::int64_t row = 0; row < block.queries; ++row) {
    C* const score = scores + row * score_stride;
    const std::int64_t query = block.query + row;
    std::int64_t seen = block.keys;
    if (s.causal && query - block.key + 1 < seen) seen = query - block.key + 1;
    for (std::int64_t i = seen < 0 ? 0 : seen; i < padded(block.keys); ++i) score[i] = invisible<C>;
    if (s.mask == nullptr) continue;
    const unsigned char* const visible = s.mask + query * s.keys + block.key;
    for (std::int64_t i = 0; i < seen; ++i) score[i] = visible[i] ? score[i] : invisible<C>;
  }
}

/// scores [queries, score_stride] = a [queries, padded(width)] b, of which `b` [width,
/// padded(s.keys)] holds all keys.
template <class C>
void scores_of(const AttentionShape& s, const Block& block, const C* a, const C* b,
               std::int64_t width, C* scores) {
  multiply<Sums::begin, C>(block.queries, padded(block.keys), width, {a, padded(width), 1},
                           {b + block.key, padded(s.keys)}, {scores, score_stride});
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
