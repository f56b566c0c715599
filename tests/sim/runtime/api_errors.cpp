// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "calls.hpp"

namespace tessera::cudart {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct Described {
  cudaError_t code;
  const char *name, *text;
};

#define TESSERA_DESCRIBE(code, text) \
  Described { code, #code, text }

constexpr Described descriptions[] = {
    TESSERA_DESCRIBE(cudaSuccess, "no error"),
    TESSERA_DESCRIBE(cudaErrorInvalidValue, "invalid argument"),
    TESSERA_DESCRIBE(cudaErrorMemoryAllocation, "out of memory"),
    TESSERA_DESCRIBE(cudaErrorInitializationError, "initialization error"),
    TESSERA_DESCRIBE(cudaErrorCudartUnloading, "driver shutting down"),
    TESSERA_DESCRIBE(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    TESSERA_DESCRIBE(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    TESSERA_DESCRIBE(cudaErrorInsufficientDriver, "the driver is older than the runtime"),
    TESSERA_DESCRIBE(cudaErrorDevicesUnavailable, "all devices are busy or unavailable"),
    TESSERA_DESCRIBE(cudaErrorInvalidDeviceFunction, "invalid device function"),
    TESSERA_DESCRIBE(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TESSERA_DESCRIBE(cudaErrorInvalidDevice, "invalid device ordinal"),
    TESSERA_DESCRIBE(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    TESSERA_DESCRIBE(cudaErrorPeerAccessUnsupported,
                     "peer access is not supported between these two devices"),
    TESSERA_DESCRIBE(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TESSERA_DESCRIBE(cudaErrorNotReady, "device not ready"),
    TESSERA_DESCRIBE(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TESSERA_DESCRIBE(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    TESSERA_DESCRIBE(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    TESSERA_DESCRIBE(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    TESSERA_DESCRIBE(cudaErrorAssert, "device-side assert triggered"),
    TESSERA_DESCRIBE(cudaErrorMisalignedAddress, "misaligned address"),
    TESSERA_DESCRIBE(cudaErrorLaunchFailure, "unspecified launch failure"),
    TESSERA_DESCRIBE(cudaErrorNotPermitted, "operation not permitted"),
    TESSERA_DESCRIBE(cudaErrorNotSupported, "operation not supported"),
    TESSERA_DESCRIBE(cudaErrorIllegalState,
                     "the operation cannot be performed in the present state"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureUnsupported,
                     "operation not permitted when stream is capturing"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureInvalidated,
                     "operation failed due to a previous error during capture"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureMerge,
                     "operation would result in a merge of separate capture sequences"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureUnmatched,
                     "capture was not ended in the same stream as it began"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureIsolation,
                     "dependency created on uncaptured work in another stream"),
    TESSERA_DESCRIBE(
        cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    TESSERA_DESCRIBE(cudaErrorStreamCaptureWrongThread,
                     "attempt to terminate a thread-local capture sequence from another thread"),
    TESSERA_DESCRIBE(cudaErrorCapturedEvent,
                     "operation not permitted on an event last recorded in a capturing stream"),
    TESSERA_DESCRIBE(cudaErrorUnknown, "unknown error"),
};
#undef TESSERA_DESCRIBE

const Described& describe(cudaError_t code) {
  static constexpr Described other{cudaErrorUnknown, "unrecognized error code",
                                   "unrecognized error code"};
  for (const Described& described : descriptions)
    if (described.code == code) return described;
  return other;
}

/// The device's error stays; a thread's own is told once.
cudaError_t find_last_error() {
  if (Runtime::unusable() == cudaSuccess && Runtime::get().devices() > 0) {
    const cudaError_t sticky = Runtime::get().current_device().sticky();
    if (sticky != cudaSuccess) return sticky;
  }
  return last_error;
}

}  // namespace

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t refuse(const char* what) {
  static std::mutex mutex;
  static auto& told = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (told.insert(what).second)
    print_line(std::string("the simulated GPU does not support ") + what);
  return remember(cudaErrorNotSupported);
}

}  // namespace tessera::cudart

using namespace tessera::cudart;

cudaError_t cudaGetLastError() {
  const cudaError_t error = find_last_error();
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return find_last_error(); }

const char* cudaGetErrorName(cudaError_t error) { return describe(error).name; }

const char* cudaGetErrorString(cudaError_t error) { return describe(error).text; }
