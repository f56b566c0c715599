// SPDX-License-Identifier: Apache-2.0
#include "run_prediction.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::train {
namespace {

metrics::RunFigures figures_of(const planner::Price& price) {
  metrics::RunFigures figures{price.step_seconds,
                              static_cast<std::int64_t>(price.memory.total()),
                              {{"forward", price.forward_seconds},
                               {"backward", price.backward_seconds},
                               {"optimizer", price.optimizer_seconds}}};
  const planner::Exposed& waits = price.exposed;
  const std::array<std::pair<const char*, double>, 5> axes{
      {{"tp", waits.tp}, {"cp", waits.cp}, {"ep", waits.ep}, {"pp", waits.pp}, {"dp", waits.dp}}};
  for (const auto& [axis, seconds] : axes)
    if (seconds > 1e-6)
      figures.parts.emplace_back(std::string(metrics::kWaitingIn) + axis, seconds);
  return figures;
}

/// The planner has one name for the axes of data parallelism.
std::string part_named(const std::string& row) {
  const std::string waiting(metrics::kWaitingIn);
  if (row == waiting + "world" || row.starts_with(waiting + "dp") || row == waiting + "fsdp")
    return waiting + "dp";
  return row;
}

bool is_of_steps(const std::string& row) {
  return row != "rest" && row != "checkpoint" && row != "validation";
}

}  // namespace

metrics::RunFigures measured_figures(const metrics::StepMeter& meter,
                                     const std::vector<metrics::Times>& of_ranks,
                                     std::int64_t memory_bytes) {
  metrics::RunFigures figures{meter.median_step_seconds(), memory_bytes, {}};
  const double share =
      figures.step_seconds / meter.total_seconds() / static_cast<double>(of_ranks.size());
  for (const metrics::Times& times : of_ranks)
    for (const auto& [row, seconds] : times)
      if (is_of_steps(row)) metrics::add_seconds(figures.parts, part_named(row), seconds * share);
  return figures;
}

std::string prediction_lines(const plan::JobPlan& plan, int ranks_on_node,
                             const metrics::RunFigures& measured) try {
  const planner::Stack stack = planner::load_stack("tessera-host");
  const planner::Host host = planner::this_host();
  const planner::Workload work = planner::workload_of(plan, stack);
  const planner::Price price =
      planner::price(work, planner::machine_of(host, ranks_on_node), stack);
  return metrics::predicted_and_measured(
      figures_of(price), measured,
      fmt::format("{} core{} of {}", host.cores, host.cores == 1 ? "" : "s", host.processor));
} catch (const Error&) {
  return "";  // stages that are timed first, or no stack file: a run does not end with an error
}

}  // namespace tessera::train
