// SPDX-License-Identifier: Apache-2.0
// Matrices in 8-bit floating point with scales (https://arxiv.org/abs/2209.05433).
//
// A block of elements shares a scale s: an element t is stored as q = the 8-bit number nearest to
// t s, ties to even, at most the largest finite one, and read as q / s. A NaN stays one, and an
// infinity makes NaN of its block.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <limits>

#include "tessera/base/dtype.hpp"

namespace tessera::kernels {

/// The elements of a matrix that share a scale.
struct ScaleBlock {
  static constexpr std::int64_t whole = std::numeric_limits<std::int64_t>::max();
  std::int64_t rows = whole, columns = whole;
};

/// A matrix [m, n] in bytes, and the scales of its blocks [blocks of rows, blocks of columns].
struct ScaledBytes {
  at::Tensor bytes;   ///< uint8
  at::Tensor scales;  ///< float32
  DType type;         ///< f8e4m3 or f8e5m2
  ScaleBlock block;
  at::Tensor inverses = {};  ///< 1 / scales, where a kernel has made them
};

/// The largest magnitude in each block of `x` [m, n], as [blocks of rows, blocks of columns] of the
/// type that x is computed in: float64 for float64, else float32. NaN where the block has one.
at::Tensor largest_magnitudes(const at::Tensor& x, ScaleBlock block);

/// Scales that bring `largest`, or 1e-12 where it is less, to the largest number of `type`; rounded
/// down to powers of two if so wanted. float32.
at::Tensor scales_for(const at::Tensor& largest, DType type, bool powers_of_two);

/// Which bytes of a matrix lie side by side on a device: a product is fastest where they do along
/// the dimension that it sums.
enum class ByteOrder : std::uint8_t { rows, columns };

/// `x` [m, n] with these scales of its blocks.
ScaledBytes to_bytes(const at::Tensor& x, const at::Tensor& scales, DType type, ScaleBlock block,
                     ByteOrder order = ByteOrder::rows);

/// The bytes of to_bytes(), by rows, into `bytes` [m, n]: uint8, contiguous.
void write_bytes(const at::Tensor& bytes, const at::Tensor& x, const at::Tensor& scales, DType type,
                 ScaleBlock block);

/// to_bytes() with the scales that scales_for() gives for the largest magnitudes of the blocks; on
/// devices in one pass over x where each row is a block.
ScaledBytes to_scaled_bytes(const at::Tensor& x, DType type, bool powers_of_two, ScaleBlock block,
                            ByteOrder order = ByteOrder::rows);

/// A matrix twice: with a scale for each row, and with one for each column.
struct ScaledBothWays {
  ScaledBytes rows, columns;
};

/// to_scaled_bytes() of rows in ByteOrder::rows and of columns in ByteOrder::columns, with fewer
/// passes over x [m, n] on devices.
ScaledBothWays to_scaled_both_ways(const at::Tensor& x, DType type, bool powers_of_two);

/// The values, rounded to nearest in `type`: float64, float32 or bfloat16. Exact if scales are
/// powers of two.
at::Tensor from_bytes(const ScaledBytes& x, at::ScalarType type);

/// Without a copy.
ScaledBytes transposed(const ScaledBytes& x);

/// a [m, k] times b [k, n] in bfloat16, rounded once. An operand has one scale, or one for each row
/// of a or column of b. On devices by LibTorch's _scaled_mm: `fast` sums in fewer bits than
/// float32, and sizes that are no multiples of 16 cost copies.
at::Tensor scaled_mm(const ScaledBytes& a, const ScaledBytes& b, bool fast);

}  // namespace tessera::kernels
