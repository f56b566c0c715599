// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/run_figures.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace tessera::planner {

metrics::RunFigures figures_of(const Price& price, const Machine& machine) {
  const double crowd = machine.host ? machine.host->crowd : 1;
  metrics::RunFigures figures{price.step_seconds,
                              static_cast<std::int64_t>(price.memory.total()),
                              {{"forward", price.forward_seconds / crowd},
                               {"backward", price.backward_seconds / crowd},
                               {"optimizer", price.optimizer_seconds / crowd}}};
  const Exposed& waits = price.exposed;
  const std::array<std::pair<const char*, double>, 5> axes{
      {{"tp", waits.tp}, {"cp", waits.cp}, {"ep", waits.ep}, {"pp", waits.pp}, {"dp", waits.dp}}};
  double all = 0, turns = 0;
  for (const auto& [axis, seconds] : axes) all += seconds;
  for (const auto& [part, seconds] : figures.parts) turns += (crowd - 1) * seconds;
  for (const auto& [axis, seconds] : axes)
    if (seconds > 1e-6)
      figures.parts.emplace_back(std::string(metrics::kWaitingIn) + axis,
                                 seconds * (1 + turns / all));
  return figures;
}

std::string words_of(const Machine& machine) {
  if (!machine.host) return machine.name;
  const Host& node = machine.host->node;
  return fmt::format("{} core{} of {}{}", node.cores, node.cores == 1 ? "" : "s", node.processor,
                     machine.name.ends_with(".toml") ? " in " + machine.name : "");
}

}  // namespace tessera::planner
