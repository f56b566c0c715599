// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/late_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/metrics/meter.hpp"

namespace tessera::metrics {

void LateRanks::step(int rank, double late, double step_seconds) {
  constexpr double kLeast_seconds = 1e-3, kLeastShare = 0.02;
  ++steps_;
  if (late >= std::max(kLeast_seconds, kLeastShare * step_seconds)) late_[rank].push_back(late);
}

std::string LateRanks::note() const {
  constexpr std::int64_t kFewestSteps = 5;
  if (steps_ < kFewestSteps) return "";
  for (const auto& [rank, seconds] : late_) {
    const auto times = static_cast<std::int64_t>(seconds.size());
    if (2 * times <= steps_) continue;
    Window all(seconds.size());
    for (const double each : seconds) all.add(each);
    return fmt::format("  note: rank {} arrives {:.3g} ms late in {:.0f} % of steps\n", rank,
                       all.median() * 1e3,
                       100 * static_cast<double>(times) / static_cast<double>(steps_));
  }
  return "";
}

}  // namespace tessera::metrics
