// The device that a rank computes on. device_host.cpp and device_cuda.cpp implement it; the build takes one of them.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>

#include "tessera/comm/world.hpp"
#include "tessera/config/job_config.hpp"

namespace tessera::train {

/// What this rank trains on: its GPU, made current, or the host, as job.device says. With "auto", a build without CUDA
/// trains on the host, and one with CUDA on GPUs only. Collective: ranks compare what they have, and all of them throw
/// the same Error(environment) where that does not fit together (device_agreement.hpp).
at::Device choose_device(comm::World& world, const config::Job& job);

/// GPU number `index` of those that this process can see, made current. Communicators on device memory then follow its
/// compute stream.
at::Device take_device(int index);

/// A GPU for one process by itself, or the host.
at::Device default_device();

/// "NVIDIA H200"; empty for the host.
std::string device_name(at::Device device);

/// Most bytes that this process's tensors took on the device so far; 0 on the host, whose resident memory tells.
std::int64_t peak_device_bytes(at::Device device);

/// Bytes that this rank's tensors can still take: of its GPU, or of its share of the host's memory among `local_ranks`.
std::int64_t free_bytes(at::Device device, int local_ranks);

/// Waits until the device has done what was asked of it, so that a step's time is a time.
void synchronize(at::Device device);

}  // namespace tessera::train
