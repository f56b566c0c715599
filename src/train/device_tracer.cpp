// SPDX-License-Identifier: Apache-2.0
#include "device_tracer.hpp"

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <utility>

#include "tessera/base/log.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {

void DeviceTracer::begin_step() {
  if (gave_up_) return;
  synchronize(device_);
  try {
    recording_ = std::make_unique<kernels::DeviceRecording>(device_.type());
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

double DeviceTracer::end_step(std::int64_t step, double began) {
  if (recording_) synchronize(device_);
  const double ended = metrics::monotonic_seconds();
  const auto recording = std::exchange(recording_, nullptr);
  if (!recording) return ended;
  try {
    std::ranges::move(recording->end(), std::back_inserter(spans_));
  } catch (const std::exception& error) {
    give_up(error.what());
    return ended;
  }
  if (spans_.empty()) give_up("it saw no kernel");
  if (steps_.times.empty()) first_ = step;
  steps_.times.emplace_back(began, ended);
  steps_.name =
      step == first_ ? fmt::format("step {}", step) : fmt::format("steps {} to {}", first_, step);
  return ended;
}

std::string DeviceTracer::take(metrics::RankTrace& trace) {
  const auto spans = std::exchange(spans_, {});
  const auto steps = std::exchange(steps_, {});
  if (spans.empty()) return "";
  metrics::add_streams(trace, spans);
  return metrics::kernel_table(steps, spans);
}

std::string DeviceTracer::for_log(const std::string& table) {
  if (table.empty() || !std::exchange(logged_, true)) return table;
  return table.substr(0, table.find('\n'));
}

void DeviceTracer::give_up(const std::string& reason) {
  gave_up_ = true;
  log::warning(
      "traces are without kernels, as LibTorch's profiler does not see this GPU ({}); it needs "
      "NVIDIA's CUPTI and the permission to use it",
      reason.substr(0, reason.find('\n')));
}

}  // namespace tessera::train
