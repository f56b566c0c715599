// SPDX-License-Identifier: Apache-2.0
// What a device does, as LibTorch's profiler (Kineto) sees it. On a GPU that needs NVIDIA's CUPTI.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <vector>

#include "tessera/base/device_span.hpp"

namespace tessera::kernels {

/// Records from its construction on: kernels, copies and memsets on a GPU, whichever thread issued
/// them, or this thread's operators on the host. One at a time. The constructor and end() throw
/// c10::Error where LibTorch's profiler cannot run.
class DeviceRecording {
 public:
  explicit DeviceRecording(at::DeviceType type);
  /// Ends it on the same thread. What was recorded is lost.
  ~DeviceRecording();
  DeviceRecording(const DeviceRecording&) = delete;
  DeviceRecording& operator=(const DeviceRecording&) = delete;

  /// On the same thread, once the device has done what was asked of it. In the order of their
  /// begin; none where the profiler saw nothing, as without CUPTI.
  std::vector<DeviceSpan> end();

 private:
  at::DeviceType type_;
  bool open_ = false;
};

}  // namespace tessera::kernels
