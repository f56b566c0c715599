// SPDX-License-Identifier: Apache-2.0
// What this rank's device does while a step is traced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/device_span.hpp"
#include "tessera/kernels/device_recording.hpp"
#include "tessera/metrics/device_trace.hpp"

namespace tessera::train {

/// Made for GPUs; on the host it records operators, which tests look at. Where LibTorch's profiler
/// sees nothing, it warns once and the trace is without kernels. Times are those of
/// metrics::monotonic_seconds().
class DeviceTracer {
 public:
  explicit DeviceTracer(at::Device device) : device_(device) {}

  /// Waits for the device, so that the step has its own work alone.
  void begin_step();
  /// Waits for the device. Returns when that was, which is the end of the step.
  double end_step(std::int64_t step, double began);
  /// Ends without a result, if a step has begun.
  void forget_step() { recording_.reset(); }
  /// Adds the tracks of all steps to a trace, and returns their table; empty without kernels.
  /// Nothing is left.
  std::string take(metrics::RankTrace& trace);
  /// What a log has of such a table: all of it the first time, and its first line later.
  std::string for_log(const std::string& table);

 private:
  void give_up(const std::string& reason);

  at::Device device_;
  bool gave_up_ = false, logged_ = false;
  std::unique_ptr<kernels::DeviceRecording> recording_;  ///< while a step is traced
  std::vector<DeviceSpan> spans_;
  metrics::TracedSteps steps_;
  std::int64_t first_ = 0;  ///< of the steps
};

}  // namespace tessera::train
