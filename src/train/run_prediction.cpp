// SPDX-License-Identifier: Apache-2.0
#include "run_prediction.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/planner/price.hpp"
#include "tessera/planner/run_figures.hpp"

namespace tessera::train {
namespace {

/// The planner has one name for the axes of data parallelism.
std::string part_named(const std::string& row) {
  const std::string waiting(metrics::kWaitingIn);
  if (row == waiting + mesh::kWorld || row.starts_with(waiting + "dp") || row == waiting + "fsdp")
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

std::optional<metrics::Prediction> prediction_of(const plan::JobPlan& plan,
                                                 const planner::RunAdvice& advice,
                                                 const metrics::RunFigures& measured) try {
  if (!advice.machine) return std::nullopt;
  const planner::Machine& machine = *advice.machine;
  const planner::Stack stack = planner::load_stack(planner::stack_of(machine));
  const planner::Price price = planner::price(planner::workload_of(plan, stack), machine, stack);
  return metrics::Prediction{planner::words_of(machine), planner::figures_of(price, machine),
                             measured, plan.model.shape.vocab};
} catch (const Error&) {
  return std::nullopt;  // stages that are timed first: a run does not end with an error
}

std::string lines_of(const metrics::Prediction& prediction, const planner::RunAdvice& advice) {
  std::string text = metrics::text_of(prediction);
  const char* head = "faster, by the planner:";
  for (const std::string& change : advice.faster) {
    text += fmt::format("    {:<24}{}\n", head, change);
    head = "";
  }
  return text;
}

}  // namespace tessera::train
