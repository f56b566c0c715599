// SPDX-License-Identifier: Apache-2.0
// Threads over the packs of a box of elements.
#pragma once

#include <utility>

#include "cuda/launch.cuh"

namespace tessera::kernels::device {

/// Quotient and remainder; in 32 bits, where both numbers fit, a fifth of the instructions.
struct Divided {
  std::int64_t quotient, remainder;
};
__device__ inline Divided divided(std::int64_t a, std::int64_t b) {
  if ((a | b) >> 32 == 0) {
    const auto n = static_cast<std::uint32_t>(a), d = static_cast<std::uint32_t>(b);
    const std::uint32_t quotient = n / d;
    return {quotient, n - quotient * d};
  }
  return {a / b, a % b};
}

/// body(row, column) for each pack of a rows x width box. Five blocks on a multiprocessor keep
/// enough loads under way.
template <int size, class Body>
void for_packs(const char* name, Extent extent, cudaStream_t stream, std::vector<Operand> operands,
               const Body& body) {
  const std::int64_t packs_per_row = extent.width / size, packs = extent.rows * packs_per_row;
  launch<5>(
      {name, (packs + threads_per_block - 1) / threads_per_block, 0, stream, std::move(operands)},
      [=] __device__(std::int64_t block, unsigned char*) {
        const std::int64_t i = block * threads_per_block + threadIdx.x;
        if (i >= packs) return;
        const auto [row, pack] = divided(i, packs_per_row);
        body(row, pack * size);
      });
}

}  // namespace tessera::kernels::device
