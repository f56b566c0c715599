// SPDX-License-Identifier: Apache-2.0
// The device that a rank computes on. device_host.cpp and device_cuda.cpp implement it; the build
// takes one of them.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>

#include "tessera/comm/world.hpp"
#include "tessera/plan/execution_plan.hpp"

namespace tessera::train {

/// What a rank computes on, and how many ranks, itself included, share that memory: those with the
/// same GPU, or those of its node on the host.
struct OwnDevice {
  at::Device device;
  int ranks;
};

/// What this rank trains on: its GPU, made current, or the host, as job.device says. With "auto", a
/// build without CUDA trains on the host, and one with CUDA on GPUs only. Collective: ranks compare
/// what they have, and all of them throw the same Error(environment) where that does not fit
/// together (device_agreement.hpp). `with_nccl`: the job uses it.
OwnDevice choose_device(comm::World& world, const plan::DevicePlan& plan, bool with_nccl = true);

/// GPU number `index` of those that this process can see, made current. Communicators on device
/// memory then follow its compute stream.
at::Device take_device(int index);

/// A GPU for one process by itself, or the host.
at::Device default_device();

/// "NVIDIA H200"; empty for the host.
std::string device_name(at::Device device);

/// Does a GPU multiply 8-bit floats? From compute capability 8.9 on. The host does not.
bool multiplies_float8(at::Device device);

/// Has LibTorch one kernel for the products of all experts there (at::_grouped_mm)? On compute
/// capabilities 9.0 and 10.x. On others its host asks the GPU for the sizes.
bool multiplies_groups(at::Device device);

/// Bytes of a GPU and of LibTorch's allocator in this process. All zeros for the host.
struct DeviceMemory {
  std::int64_t total = 0, free = 0;  ///< of the GPU; other processes take part of it too
  std::int64_t allocated = 0;        ///< by this process's tensors
  std::int64_t reserved = 0;         ///< by the allocator, for tensors of now and later
  std::int64_t peak_allocated = 0, peak_reserved = 0;
  /// allocations for which the allocator had to give back what it had reserved
  std::int64_t retries = 0;
  /// Context, NCCL's buffers, other processes.
  std::int64_t outside() const { return total - free - reserved; }
};
DeviceMemory device_memory(at::Device device);
/// The most so far: of tensors on a device, resident in memory on the host.
std::int64_t peak_bytes(at::Device device);

/// Bytes that this rank's tensors can still take: an equal part of what is free on its GPU or its
/// node for each of the `ranks` that share it, and what LibTorch has reserved there for this rank.
std::int64_t free_bytes(at::Device device, int ranks);

/// Waits until the device has done what was asked of it, so that a step's time is a time.
void synchronize(at::Device device);

}  // namespace tessera::train
