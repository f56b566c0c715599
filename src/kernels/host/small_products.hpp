// SPDX-License-Identifier: Apache-2.0
// Products of matrices that stay in a core's cache: tiles of sums in registers.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

// Registers hold tile_rows x tile_vectors sums, a row of the right matrix and one broadcast.
#if defined(__AVX512F__)
inline constexpr int tile_rows = 8, tile_vectors = 2;
#elif defined(__AVX2__)
inline constexpr int tile_rows = 6, tile_vectors = 2;
#else
inline constexpr int tile_rows = 4, tile_vectors = 2;
#endif

/// Element (row, k) is data[row * row_stride + k * k_stride].
template <class C>
struct LeftMatrix {
  const C* data;
  std::int64_t row_stride, k_stride;
};

/// Rows that begin `stride` apart and hold whole vectors.
template <class C>
struct Matrix {
  C* data;
  std::int64_t stride;
};

/// Whether a product is added to what the sums hold, or begins them.
enum class Sums : bool { begin, go_on };

template <Sums sums, int rows, int vectors, class C>
TESSERA_HD void multiply_tile(LeftMatrix<C> a, Matrix<const C> b, std::int64_t depth,
                              Matrix<C> sum) {
  using V = VecOf<C>;
  V tile[rows][vectors] = {};
  if constexpr (sums == Sums::go_on)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v)
        tile[r][v] = load(sum.data + r * sum.stride + v * lanes<C>, Whole{});
  for (std::int64_t k = 0; k < depth; ++k) {
    V right[vectors];
    for (int v = 0; v < vectors; ++v)
      right[v] = load(b.data + k * b.stride + v * lanes<C>, Whole{});
    for (int r = 0; r < rows; ++r) {
      const V left = broadcast(a.data[r * a.row_stride + k * a.k_stride]);
      for (int v = 0; v < vectors; ++v) tile[r][v] = fma(left, right[v], tile[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      store(sum.data + r * sum.stride + v * lanes<C>, tile[r][v], Whole{});
}

template <Sums sums, int vectors, class C>
TESSERA_HD void multiply_columns(std::int64_t rows, LeftMatrix<C> a, Matrix<const C> b,
                                 std::int64_t depth, Matrix<C> sum) {
  constexpr int together = tile_rows * tile_vectors / vectors;
  std::int64_t row = 0;
  for (; row + together <= rows; row += together) {
    multiply_tile<sums, together, vectors>(a, b, depth, sum);
    a.data += together * a.row_stride;
    sum.data += together * sum.stride;
  }
  for (; row < rows; ++row) {
    multiply_tile<sums, 1, vectors>(a, b, depth, sum);
    a.data += a.row_stride;
    sum.data += sum.stride;
  }
}

/// sum [rows, columns] = or += a [rows, depth] b [depth, columns]; columns are whole vectors. An
/// element is summed in the order of the depth, wherever it lies. Never inlined: its tiles need all
/// registers.
template <Sums sums, class C>
[[gnu::noinline]] void multiply(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                LeftMatrix<C> a, Matrix<const C> b, Matrix<C> sum) {
  constexpr std::int64_t step = tile_vectors * lanes<C>;
  std::int64_t column = 0;
  for (; column + step <= columns; column += step)
    multiply_columns<sums, tile_vectors>(rows, a, {b.data + column, b.stride}, depth,
                                         {sum.data + column, sum.stride});
  for (; column < columns; column += lanes<C>)
    multiply_columns<sums, 1>(rows, a, {b.data + column, b.stride}, depth,
                              {sum.data + column, sum.stride});
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
