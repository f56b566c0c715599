#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "tessera/base/error.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/metrics/memory.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {

torch::Device choose_device(const comm::World& world) {
  if (!torch::cuda::is_available()) return torch::kCPU;
  const auto index = static_cast<c10::DeviceIndex>(comm::choose_device(world.local_rank()));
  c10::cuda::set_device(index);
  comm::set_compute_stream_provider([] { return static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()); });
  return {torch::kCUDA, index};
}

torch::Device default_device() {
  return torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
}

std::string device_name(torch::Device device) {
  return device.is_cuda() ? at::cuda::getDeviceProperties(device.index())->name : "";
}

std::int64_t peak_device_bytes(torch::Device device) {
  if (!device.is_cuda()) return 0;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
}

std::int64_t free_bytes(torch::Device device, int local_ranks) {
  if (!device.is_cuda()) return metrics::available_host_bytes() / local_ranks;
  std::size_t free = 0, total = 0;
  const auto error = cudaMemGetInfo(&free, &total);
  require(error == cudaSuccess, ExitCode::environment, "cudaMemGetInfo: {}", cudaGetErrorString(error));
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<std::int64_t>(free) + stats.reserved_bytes[all].current - stats.allocated_bytes[all].current;
}

void synchronize(torch::Device device) {
  if (device.is_cuda()) c10::cuda::device_synchronize();
}

}  // namespace tessera::train
