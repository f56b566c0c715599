// SPDX-License-Identifier: Apache-2.0
// The words of CUDA C++ for kernels that g++ compiles. A block's threads are fibers (block.hpp) of
// one host thread, so that these variables have one value for each of them: the fiber that runs.
#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "block.hpp"

// Read in every loop of a kernel, so without the call of a function that libraries make for
// thread-local variables: the library is there when the program starts.
#define TESSERA_SIM_INDEX inline thread_local __attribute__((tls_model("initial-exec")))
TESSERA_SIM_INDEX uint3 threadIdx{0, 0, 0};
TESSERA_SIM_INDEX uint3 blockIdx{0, 0, 0};
TESSERA_SIM_INDEX dim3 blockDim{1, 1, 1};
TESSERA_SIM_INDEX dim3 gridDim{1, 1, 1};
#undef TESSERA_SIM_INDEX

inline void __syncthreads() { tessera::sim::this_block().barrier(); }

/// The value of the lane whose number differs by `lane_mask`. All lanes of `mask` must call it.
template <class V>
V __shfl_xor_sync(unsigned mask, V value, int lane_mask, int width = 32) {
  static_assert(sizeof(V) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<V>);
  const unsigned partner =
      static_cast<unsigned>(lane_mask) < static_cast<unsigned>(width) ? lane_mask : 0;
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = tessera::sim::this_block().exchange(mask, bits, partner);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return tessera::sim::this_block().atomic_add(address, value);
}

inline unsigned atomicMax(unsigned* address, unsigned value) {
  return tessera::sim::this_block().atomic_max(address, value);
}
inline unsigned long long atomicMax(unsigned long long* address, unsigned long long value) {
  return tessera::sim::this_block().atomic_max(address, value);
}
