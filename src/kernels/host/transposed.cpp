// SPDX-License-Identifier: Apache-2.0
#include "host/transposed.hpp"

#include <algorithm>

#include "host/run.hpp"
#include "row_types.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

using Four = float __attribute__((vector_size(16)));

constexpr std::int64_t kTileSide = 4;
/// Rows of two cache lines: all lines of a block fit in the first cache.
constexpr std::int64_t kBlockSide = 32;

Four load(const float* from) {
  Four values;
  __builtin_memcpy(&values, from, sizeof values);
  return values;
}

void store(float* to, Four values) { __builtin_memcpy(to, &values, sizeof values); }

/// to [4, 4] <- the transpose of from [4, 4].
void transpose_tile(Rows<const float> from, Rows<float> to) {
  const Four a = load(from.data), b = load(from.data + from.stride);
  const Four c = load(from.data + 2 * from.stride), d = load(from.data + 3 * from.stride);
  const Four low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to.data, __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5));
  store(to.data + to.stride, __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7));
  store(to.data + 2 * to.stride, __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5));
  store(to.data + 3 * to.stride, __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7));
}

void transpose_elements(Rows<const float> from, Rows<float> to, std::int64_t rows,
                        std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      to.data[column * to.stride + row] = from.data[row * from.stride + column];
}

/// The part that begins at (row, column).
template <class T>
Rows<T> part_of(Rows<T> matrix, std::int64_t row, std::int64_t column) {
  return {matrix.data + row * matrix.stride + column, matrix.stride};
}

/// to [columns, rows] <- from [rows, columns].
void transpose_block(Rows<const float> from, Rows<float> to, std::int64_t rows,
                     std::int64_t columns) {
  const std::int64_t whole_rows = rows / kTileSide * kTileSide,
                     whole_columns = columns / kTileSide * kTileSide;
  for (std::int64_t column = 0; column < whole_columns; column += kTileSide)
    for (std::int64_t row = 0; row < whole_rows; row += kTileSide)
      transpose_tile(part_of(from, row, column), part_of(to, column, row));
  transpose_elements(part_of(from, whole_rows, 0), part_of(to, 0, whole_rows), rows - whole_rows,
                     columns);
  transpose_elements(part_of(from, 0, whole_columns), part_of(to, whole_columns, 0), whole_rows,
                     columns - whole_columns);
}

/// Processors do not foresee that the next block follows in all of these lines.
void prefetch_block(Rows<const float> from, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t line = 64 / sizeof(float);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; column += line)
      __builtin_prefetch(from.data + row * from.stride + column);
}

/// Block by block; rows <= kBlockSide.
void transpose_band(Rows<const float> from, Rows<float> to, std::int64_t rows,
                    std::int64_t columns) {
  for (std::int64_t column = 0; column < columns; column += kBlockSide) {
    const std::int64_t width = std::min(kBlockSide, columns - column), next = column + width;
    prefetch_block(part_of(from, 0, next), rows, std::min(kBlockSide, columns - next));
    transpose_block(part_of(from, 0, column), part_of(to, column, 0), rows, width);
  }
}

}  // namespace

at::Tensor transposed_copy(const at::Tensor& x) {
  TESSERA_EXPECT(x.dim() == 2 && x.is_cpu() && x.scalar_type() == at::kFloat &&
                     (x.stride(1) == 1 || x.size(1) <= 1),
                 "only a float32 matrix with contiguous rows on the host is transposed here");
  const std::int64_t rows = x.size(0), columns = x.size(1);
  at::Tensor result = at::empty({columns, rows}, x.options());
  const Rows<const float> from{x.const_data_ptr<float>(), x.stride(0)};
  const Rows<float> to{result.mutable_data_ptr<float>(), rows};
  const std::int64_t blocks = (rows + kBlockSide - 1) / kBlockSide;
  for_rows(blocks, columns * kBlockSide, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t end = std::min(rows, (first + count) * kBlockSide);
    for (std::int64_t row = first * kBlockSide; row < end; row += kBlockSide)
      transpose_band(part_of(from, row, 0), part_of(to, 0, row), std::min(kBlockSide, end - row),
                     columns);
  });
  return result;
}

}  // namespace tessera::kernels
