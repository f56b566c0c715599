// SPDX-License-Identifier: Apache-2.0
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <new>

#include "failed_allocation.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/gpu_failure.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/kernels/device_clock.hpp"
#include "tessera/metrics/memory.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/device_copies.hpp"

namespace tessera::train {
namespace {

void check_cuda(cudaError_t code, const char* call) {
  require(!is_gpu_failure(code), ExitCode::environment, "{}",
          gpu_failure(cudaGetErrorString(code), call));
  require(code == cudaSuccess, ExitCode::environment, "{}: {}", call, cudaGetErrorString(code));
}

/// Pinned, so that copies from the device do not hold the caller; ordinary where no more can be
/// pinned.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  ~PinnedMemory() { release(); }

  std::byte* reserve(std::size_t bytes) {
    if (bytes <= capacity_) return memory_;
    release();
    void* memory = nullptr;
    pinned_ = cudaMallocHost(&memory, bytes) == cudaSuccess;
    if (!pinned_) {
      static_cast<void>(cudaGetLastError());  // which would be found by the next call
      memory = ::operator new(bytes);
    }
    memory_ = static_cast<std::byte*>(memory);
    capacity_ = bytes;
    return memory_;
  }

 private:
  /// CUDA waits for the whole device before it frees pinned memory.
  void release() {
    if (pinned_ && comm::has_stopped_waiting()) return;
    if (pinned_)
      cudaFreeHost(memory_);
    else
      ::operator delete(memory_);
    memory_ = nullptr;
    capacity_ = 0;
    pinned_ = false;
  }

  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
  bool pinned_ = false;
};

class CudaCopies final : public DeviceCopies {
 public:
  explicit CudaCopies(at::Device device) : device_(device) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
    for (cudaEvent_t* event : {&computed_, &copied_})
      check_cuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags");
  }
  ~CudaCopies() override {
    if (comm::has_stopped_waiting()) return;  // for this stream, too: it may never come to its end
    cudaStreamSynchronize(stream_);
    cudaEventDestroy(copied_);
    cudaEventDestroy(computed_);
    cudaStreamDestroy(stream_);
  }

  std::byte* reserve(std::size_t bytes) override {
    check_cuda(cudaEventRecord(computed_, compute_stream()), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(stream_, computed_, 0), "cudaStreamWaitEvent");
    return memory_.reserve(bytes);
  }

  void copy(std::byte* to, const void* from, std::size_t bytes) override {
    cudaPointerAttributes place{};
    check_cuda(cudaPointerGetAttributes(&place, from), "cudaPointerGetAttributes");
    if (place.type != cudaMemoryTypeDevice) {
      std::memcpy(to, from, bytes);
      return;
    }
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
               "cudaMemcpyAsync");
    check_cuda(cudaEventRecord(copied_, stream_), "cudaEventRecord");
  }

  void wait() override {
    check_cuda(cudaSetDevice(device_.index()),
               "cudaSetDevice");  // on a thread that has no device yet
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  /// An event that was never recorded is done.
  void hold_updates() override {
    check_cuda(cudaStreamWaitEvent(compute_stream(), copied_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaStream_t compute_stream() const {
    return c10::cuda::getCurrentCUDAStream(device_.index()).stream();
  }

  at::Device device_;
  PinnedMemory memory_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t computed_ = nullptr, copied_ = nullptr;
};

}  // namespace

at::Device take_device(int number) {
  const auto index = static_cast<c10::DeviceIndex>(number);
  comm::use_device(number);
  c10::cuda::set_device(index);
  follow_device_memory();
  comm::set_compute_stream_provider(
      [] { return static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()); });
  comm::set_device_clock(&kernels::write_device_time);
  return {at::kCUDA, index};
}

at::Device default_device() {
  return (c10::cuda::device_count() > 0) ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

namespace {

cudaDeviceProp properties_of(at::Device device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index()), "cudaGetDeviceProperties");
  return properties;
}

}  // namespace

std::string device_name(at::Device device) {
  return device.is_cuda() ? properties_of(device).name : "";
}

bool multiplies_float8(at::Device device) {
  if (!device.is_cuda()) return false;
  const cudaDeviceProp properties = properties_of(device);
  return properties.major * 10 + properties.minor >= 89;
}

bool multiplies_groups(at::Device device) {
  if (!device.is_cuda()) return false;
  const int major = properties_of(device).major;
  return major == 9 || major == 10;
}

DeviceMemory device_memory(at::Device device) {
  if (!device.is_cuda()) return {};
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  DeviceMemory memory;
  memory.total = static_cast<std::int64_t>(total);
  memory.free = static_cast<std::int64_t>(free);
  memory.allocated = stats.allocated_bytes[all].current;
  memory.reserved = stats.reserved_bytes[all].current;
  memory.peak_allocated = stats.allocated_bytes[all].peak;
  memory.peak_reserved = stats.reserved_bytes[all].peak;
  memory.retries = stats.num_alloc_retries;
  return memory;
}

std::int64_t free_bytes(at::Device device, int ranks) {
  if (!device.is_cuda()) return metrics::available_host_bytes() / ranks;
  const DeviceMemory memory = device_memory(device);
  return memory.free / ranks + memory.reserved - memory.allocated;
}

std::unique_ptr<DeviceCopies> make_device_copies(at::Device device) {
  return device.is_cuda() ? std::make_unique<CudaCopies>(device) : nullptr;
}

void synchronize(at::Device device) {
  if (device.is_cuda()) c10::cuda::device_synchronize();
}

}  // namespace tessera::train
