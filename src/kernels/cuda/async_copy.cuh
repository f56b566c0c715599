// SPDX-License-Identifier: Apache-2.0
// Copies into shared memory that go on while their threads do: cp.async of the PTX ISA. The
// simulated GPU has a file of this name for itself: the include path chooses.
#pragma once

namespace tessera::kernels::device {

/// Begins to copy 16 bytes, without registers. The thread that began it may read them after
/// wait_for_copies(). GPUs before compute capability 8.0 have no such copies: the thread makes it.
template <class Pack>
__device__ void copy_async(Pack* shared, const void* from) {
  static_assert(sizeof(Pack) == 16);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
  *shared = *static_cast<const Pack*>(from);
#endif
}

/// Ends a group of this thread's copies.
__device__ inline void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// For all groups but the newest.
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

}  // namespace tessera::kernels::device
