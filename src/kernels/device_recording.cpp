// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/device_recording.hpp"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <utility>

namespace tessera::kernels {
namespace {

namespace profiler = torch::autograd::profiler;

std::int64_t nanoseconds(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// What to take from Kineto's times, which are Unix time, for the steady clock's.
std::int64_t unix_offset() {
  const std::int64_t before = nanoseconds(std::chrono::steady_clock::now());
  const std::int64_t unix_time = nanoseconds(std::chrono::system_clock::now());
  const std::int64_t after = nanoseconds(std::chrono::steady_clock::now());
  return unix_time - (before + (after - before) / 2);
}

}  // namespace

DeviceRecording::DeviceRecording(at::DeviceType type) : type_(type) {
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  const std::set activities{type == at::kCPU ? profiler::ActivityType::CPU
                                             : profiler::ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  open_ = true;
}

DeviceRecording::~DeviceRecording() {
  try {
    end();
  } catch (const std::exception&) {  // nobody asked for the result
  }
}

std::vector<DeviceSpan> DeviceRecording::end() {
  std::vector<DeviceSpan> spans;
  if (!std::exchange(open_, false)) return spans;
  const auto result = profiler::disableProfiler();
  const std::int64_t offset = unix_offset();
  const auto seconds = [&](std::uint64_t unix_time) {
    return static_cast<double>(static_cast<std::int64_t>(unix_time) - offset) * 1e-9;
  };
  for (const profiler::KinetoEvent& event : result->events()) {
    if (event.deviceType() != type_) continue;  // the host's calls of CUDA
    const bool host = type_ == at::kCPU;
    spans.push_back(
        {event.name(),
         host ? static_cast<std::int64_t>(event.startThreadId()) : event.deviceResourceId(),
         seconds(event.startNs()), seconds(event.endNs())});
  }
  std::ranges::stable_sort(spans, {}, &DeviceSpan::begin);
  return spans;
}

}  // namespace tessera::kernels
