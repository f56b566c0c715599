// SPDX-License-Identifier: Apache-2.0
// A launch on a GPU. The simulated one has a file of this name for itself: the include path
// chooses.
#pragma once

#include "cuda/operand.hpp"

namespace tessera::kernels::device {

/// The GPU's clock; steps of 32 ns on an H200.
__device__ inline std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Registers are shared out so that `least_blocks` blocks fit a multiprocessor.
template <int least_blocks, class Body>
__global__ void __launch_bounds__(threads_per_block, least_blocks)
    run_blocks(std::int64_t blocks, Body body) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) body(block, shared);
}

template <int least_blocks, class Body>
void launch_kernel(const Launch& launch, const Body& body) {
  if (launch.shared_bytes > 48 * 1024)
    cudaFuncSetAttribute(run_blocks<least_blocks, Body>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(launch.shared_bytes));
  const auto grid = static_cast<unsigned>(
      launch.blocks < (std::int64_t{1} << 30) ? launch.blocks : (std::int64_t{1} << 30));
  run_blocks<least_blocks>
      <<<grid, threads_per_block, launch.shared_bytes, launch.stream>>>(launch.blocks, body);
}

}  // namespace tessera::kernels::device
