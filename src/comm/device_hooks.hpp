// SPDX-License-Identifier: Apache-2.0
// How communicators of device memory learn of CUDA graphs, and are asked for what the device has
// measured.
#pragma once

#include <functional>

namespace tessera::comm {

/// Called for tessera/comm/device.hpp as long as this lives.
class DeviceHooks {
 public:
  struct Functions {
    std::function<void()> graph_begins;  ///< no graph before it is launched again
    std::function<void()> graph_abandoned;
    std::function<void()> graph_launched;
    std::function<void()> collect_waits;
  };
  explicit DeviceHooks(Functions functions);
  ~DeviceHooks();
  DeviceHooks(const DeviceHooks&) = delete;

  /// Those of all communicators.
  static void call(std::function<void()> Functions::*function);

 private:
  const Functions functions_;
};

}  // namespace tessera::comm
