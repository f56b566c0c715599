// SPDX-License-Identifier: Apache-2.0
// What LibTorch asks of libtorch_cuda.so besides operators. Registered when the library is loaded;
// the device itself is initialised at the first use, as LibTorch does on a GPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "host_kernels.hpp"
#include "pinned_memory.hpp"
#include "sim/sim.hpp"

namespace c10::cuda::_internal {
/// Exported by libc10_cuda.so, in no header.
void setHasPrimaryContext(bool (*function)(DeviceIndex));
}  // namespace c10::cuda::_internal

namespace tessera::sim {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;

/// Runs under the allocator's lock: must not allocate device memory. An error is sticky, and the
/// next call gets it.
void trace(const TraceEntry& entry) {
  const auto* const data = reinterpret_cast<const void*>(entry.addr_);
  auto* const stream = static_cast<cudaStream_t>(entry.stream_);
  // What a graph allocates stays its own: between launches nobody else gets it.
  const bool of_graph = entry.mempool_ != c10::MempoolId_t{0, 0};
  if (of_graph && !is_capturing(stream)) return;
  if (entry.action_ == TraceEntry::ALLOC)
    static_cast<void>(block_allocated(data, entry.size_, stream));
  if (entry.action_ == TraceEntry::FREE_COMPLETED)
    static_cast<void>(block_freed(data, entry.size_, stream));
}

void initialise() {
  auto* const allocator = c10::cuda::CUDACachingAllocator::get();
  allocator->init(c10::cuda::device_count_ensure_non_zero());
  c10::SetAllocator(c10::kCUDA, allocator);
  allocator->attachAllocatorTraceTracker(&trace);
  c10::cuda::_internal::setHasPrimaryContext(
      [](c10::DeviceIndex device) { return device < settings().devices; });
  if (!settings().host_kernels) return;
  use_host_kernels();
  use_host_attention();
}

bool is_of_type(const void* data, cudaMemoryType type) {
  cudaPointerAttributes attributes{};
  const bool known = cudaPointerGetAttributes(&attributes, data) == cudaSuccess;
  if (!known) static_cast<void>(cudaGetLastError());
  return known && attributes.type == type;
}

}  // namespace
}  // namespace tessera::sim

namespace at {

/// LibTorch finds the class by this name.
class CUDAHooks final : public CUDAHooksInterface {
 public:
  explicit CUDAHooks(CUDAHooksArgs) {}

  void init() const override { tessera::sim::initialise(); }
  bool hasCUDA() const override { return c10::cuda::device_count() > 0; }
  bool hasCUDART() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return hasCUDA(); }
  bool hasPrimaryContext(DeviceIndex device) const override {
    return c10::cuda::hasPrimaryContext(device);
  }
  int getNumGPUs() const override { return c10::cuda::device_count(); }
  DeviceIndex deviceCount() const override { return c10::cuda::device_count(); }
  DeviceIndex current_device() const override { return c10::cuda::current_device(); }
  DeviceIndex getCurrentDevice() const override { return c10::cuda::current_device(); }
  void setCurrentDevice(DeviceIndex device) const override { c10::cuda::set_device(device); }
  DeviceIndex exchangeDevice(DeviceIndex device) const override {
    return c10::cuda::ExchangeDevice(device);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override {
    return c10::cuda::MaybeExchangeDevice(device);
  }

  /// The host's: random numbers are the host's, too.
  const Generator& getDefaultGenerator(DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }

  Allocator* getPinnedMemoryAllocator() const override { return &tessera::sim::pinned_memory(); }
  bool isPinnedPtr(const void* data) const override {
    return tessera::sim::is_of_type(data, cudaMemoryTypeHost);
  }
  Allocator* getCUDADeviceAllocator() const override {
    return c10::cuda::CUDACachingAllocator::get();
  }
  Device getDeviceFromPtr(void* data) const override {
    cudaPointerAttributes attributes{};
    C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, data));
    TORCH_CHECK(attributes.type == cudaMemoryTypeDevice,
                "The specified pointer does not lie in device memory");
    return {kCUDA, static_cast<DeviceIndex>(attributes.device)};
  }
  void deviceSynchronize(DeviceIndex) const override { c10::cuda::device_synchronize(); }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at

/// tests/test_device.hpp asks for it.
extern "C" int tessera_simulated_gpu() { return tessera::sim::settings().devices; }
