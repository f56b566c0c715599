// SPDX-License-Identifier: Apache-2.0
// The calling thread's current device, for a while.
#pragma once

#include <cuda_runtime_api.h>

namespace tessera::sim::nccl {

class OnDevice {
 public:
  explicit OnDevice(int device) {
    cudaGetDevice(&before_);
    cudaSetDevice(device);
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace tessera::sim::nccl
