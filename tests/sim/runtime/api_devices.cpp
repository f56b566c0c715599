// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "calls.hpp"
#include "capture.hpp"
#include "device_memory.hpp"

using namespace tessera::cudart;

namespace {

constexpr int kilobyte = 1024;

bool is_device(const Runtime& runtime, int device) {
  return device >= 0 && device < runtime.devices();
}

/// What an H100 says where a program plans by it.
void set_launch_limits(cudaDeviceProp& p) {
  p.warpSize = 32;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.multiProcessorCount = 132;
  p.regsPerBlock = p.regsPerMultiprocessor = 64 * kilobyte;
  p.sharedMemPerBlock = 48 * kilobyte;
  p.sharedMemPerBlockOptin = 227 * kilobyte;
  p.sharedMemPerMultiprocessor = 228 * kilobyte;
  p.reservedSharedMemPerBlock = kilobyte;
  p.l2CacheSize = 50 * kilobyte * kilobyte;
  p.totalConstMem = 64 * kilobyte;
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp p{};
  tessera::sim::settings().device_name.copy(p.name, sizeof p.name - 1);
  const int identity[4] = {0x7e55e7a, 0, 0, device};  // processes of a node see the same devices
  static_assert(sizeof identity == sizeof p.uuid);
  std::memcpy(&p.uuid, identity, sizeof identity);
  p.totalGlobalMem = tessera::sim::settings().memory_bytes;
  p.major = tessera::sim::settings().capability / 10;
  p.minor = tessera::sim::settings().capability % 10;
  set_launch_limits(p);
  p.memPitch = 2147483647;
  p.textureAlignment = 512;
  p.concurrentKernels = p.asyncEngineCount = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.memoryBusWidth = 5120;
  p.pciBusID = device + 1;
  return p;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return call([&](Runtime& runtime) {
    *count = runtime.devices();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call([&](Runtime&) {
    *device = current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call([&](Runtime& runtime) {
    if (!is_device(runtime, device)) return cudaErrorInvalidDevice;
    set_current_device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&](Runtime& runtime) {
    if (!is_device(runtime, device)) return cudaErrorInvalidDevice;
    *properties = properties_of(device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return device_call([](Runtime&) {
    const cudaError_t error = unsafe_call("cudaDeviceSynchronize");
    return error == cudaSuccess ? wait_for_device(current_device()) : error;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&](Runtime& runtime) {
    *can = 0;
    return is_device(runtime, device) && is_device(runtime, peer) ? cudaSuccess
                                                                  : cudaErrorInvalidDevice;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return remember(cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return device_call([&](Runtime&) {
    *free = DeviceMemory::get().free_bytes(current_device());
    *total = tessera::sim::settings().memory_bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = tessera::sim::settings().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = cuda_version;
  return cudaSuccess;
}

/// Kernels are C++ functions here, and any of them may have any shared memory.
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
