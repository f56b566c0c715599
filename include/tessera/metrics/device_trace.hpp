// SPDX-License-Identifier: Apache-2.0
// What a GPU did in some steps: as tracks of a trace, and as a table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/device_span.hpp"
#include "tessera/metrics/trace_file.hpp"

namespace tessera::metrics {

/// The name of a kernel without return type, namespaces and arguments of functions:
/// "elementwise_kernel<4, AddFunctor<float>>".
std::string short_name(std::string_view kernel);

/// Adds a track for each stream, "GPU stream 7", with spans that follow each other: what begins
/// before the one before it has ended is drawn from that end on.
void add_streams(RankTrace& trace, std::span<const DeviceSpan> spans);

/// Some steps, one after the other, in seconds of the same clock as the spans.
struct TracedSteps {
  std::string name;  ///< "step 4", "steps 2 to 4"
  std::vector<std::pair<double, double>> times;
};

/// Lines: how long the GPU was busy in these steps, and its longest pause; then what it did for how
/// long, by name. Spans may come in any order. The last line has no end.
std::string kernel_table(const TracedSteps& steps, std::span<const DeviceSpan> spans);

}  // namespace tessera::metrics
