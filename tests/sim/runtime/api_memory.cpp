// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"
#include "capture.hpp"
#include "device_memory.hpp"
#include "pinned.hpp"

using namespace tessera::cudart;

namespace {

/// Waits for every device: a task of any of them may use the memory. Whoever uses its addresses
/// next need not know of them.
void wait_for_users(Runtime& runtime, const Allocation& memory) {
  for (int d = 0; d < runtime.devices(); ++d) wait_for_device(d);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data);
  const std::lock_guard lock(runtime.issue);
  runtime.races.forget(Bytes{begin, begin + memory.bytes});
}

cudaError_t free_device_memory(Runtime& runtime, void* data) {
  const Allocation allocation = DeviceMemory::get().find(data);
  if (allocation.bytes == 0 || allocation.data != data) return cudaErrorInvalidValue;
  wait_for_users(runtime, allocation);
  DeviceMemory::get().free(data);
  return runtime.current_device().sticky();
}

cudaPointerAttributes attributes_of(const void* pointer) {
  auto* data = const_cast<void*>(pointer);
  if (const Allocation device = DeviceMemory::get().find(pointer); device.bytes > 0)
    return {cudaMemoryTypeDevice, device.device, data, nullptr, {}};
  if (const Allocation pinned = PinnedMemory::get().find(pointer); pinned.bytes > 0)
    return {cudaMemoryTypeHost, pinned.device, data, data, {}};
  return {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, data, {}};
}

}  // namespace

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return device_call([&](Runtime&) {
    if (const cudaError_t error = unsafe_call("cudaMalloc"); error != cudaSuccess) return error;
    *data = bytes == 0 ? nullptr : DeviceMemory::get().allocate(current_device(), bytes);
    return bytes == 0 || *data != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

/// Waits for all tasks, as CUDA does.
cudaError_t cudaFree(void* data) {
  return call([&](Runtime& runtime) {
    if (const cudaError_t error = unsafe_call("cudaFree"); error != cudaSuccess) return error;
    return data == nullptr ? runtime.current_device().sticky() : free_device_memory(runtime, data);
  });
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  return device_call([&](Runtime&) {
    if (const cudaError_t error = unsafe_call("cudaMallocHost"); error != cudaSuccess) return error;
    *data = bytes == 0 ? nullptr : PinnedMemory::get().allocate(bytes, current_device());
    return bytes == 0 || *data != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

/// All pinned memory is portable and mapped.
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  return cudaMallocHost(data, bytes);
}

cudaError_t cudaFreeHost(void* data) {
  return call([&](Runtime& runtime) {
    if (data == nullptr) return cudaSuccess;
    if (const cudaError_t error = unsafe_call("cudaFreeHost"); error != cudaSuccess) return error;
    const Allocation allocation = PinnedMemory::get().remove(data);
    if (allocation.bytes == 0) return cudaErrorInvalidValue;
    wait_for_users(runtime, allocation);
    PinnedMemory::release(allocation);
    return runtime.current_device().sticky();
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call([&](Runtime&) {
    *attributes = attributes_of(pointer);
    return cudaSuccess;
  });
}
