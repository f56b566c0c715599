// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/run_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::planner {
namespace {

/// Of the time that others have this rank's core, the share in its own passes: the system gives the
/// core to another rank after a turn. A rank that meets others earlier waits there instead.
double interrupted_share(double computed_seconds, double calls) {
  constexpr double kTurnSeconds = 8e-3;  // two ticks of most Linux kernels
  const double between = computed_seconds / (calls + 1);
  return between / (between + kTurnSeconds);
}

/// Waiting for other ranks, and for the turns of those that have the core meanwhile. While a stage
/// is idle, half of the others are on average, and those that are not have more of the cores.
/// Messages are sent, and polled for, in that time. All other turns are waited for in calls.
Exposed with_turns(const Price& price, double turns) {
  Exposed out = price.exposed;
  const double idle = price.idle_share / (1 - price.idle_share) / 2 * price.step_seconds;
  const double between_stages = std::clamp(idle - out.pp, 0.0, turns);
  const double calls = out.tp + out.cp + out.ep + out.dp;
  out.pp += calls > 0 ? between_stages : turns;
  if (calls <= 0) return out;
  for (double Exposed::*axis : {&Exposed::tp, &Exposed::cp, &Exposed::ep, &Exposed::dp})
    out.*axis *= 1 + (turns - between_stages) / calls;
  return out;
}

}  // namespace

metrics::RunFigures figures_of(const Price& price, const Machine& machine) {
  const double crowd = machine.host ? machine.host->crowd : 1;
  const double computed =
      (price.forward_seconds + price.backward_seconds + price.optimizer_seconds) / crowd;
  const double stretched = 1 + (crowd - 1) * interrupted_share(computed, price.calls);
  metrics::RunFigures figures{price.step_seconds,
                              static_cast<std::int64_t>(price.memory.total()),
                              {{"forward", price.forward_seconds / crowd * stretched},
                               {"backward", price.backward_seconds / crowd * stretched},
                               {"optimizer", price.optimizer_seconds / crowd * stretched}}};
  const Exposed waits = with_turns(price, (crowd - stretched) * computed);
  const std::array<std::pair<const char*, double>, 5> axes{
      {{"tp", waits.tp}, {"cp", waits.cp}, {"ep", waits.ep}, {"pp", waits.pp}, {"dp", waits.dp}}};
  for (const auto& [axis, seconds] : axes)
    if (seconds > 1e-6)
      figures.parts.emplace_back(std::string(metrics::kWaitingIn) + axis, seconds);
  return figures;
}

std::string words_of(const Machine& machine) {
  if (!machine.host) return machine.name;
  const Host& node = machine.host->node;
  return fmt::format("{} core{} of {}{}", node.cores, node.cores == 1 ? "" : "s", node.processor,
                     machine.name.ends_with(".toml") ? " in " + machine.name : "");
}

}  // namespace tessera::planner
