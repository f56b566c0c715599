// SPDX-License-Identifier: Apache-2.0
// tessera bench step: a job's steps beside what its ranks could compute.
#include "bench_step.hpp"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "plan_data.hpp"
#include "ranks.hpp"
#include "tessera/base/json.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/train/step_bench.hpp"

namespace tessera::app {
namespace {

std::string as_text(const train::BenchedStep& step, int ranks) {
  std::string text = fmt::format("step        {:.4g} ms, the median\n", step.seconds * 1e3);
  text += fmt::format("tokens/s    {:.5g}, {:.5g} of each rank\n", step.tokens_per_second,
                      step.tokens_per_second / ranks);
  text += fmt::format("speed       {} of each rank", metrics::human_flops(step.flops_per_second));
  if (step.peak.flops > 0)
    text += fmt::format(": {:.1f} % of {} ({})", 100 * step.flops_per_second / step.peak.flops,
                        metrics::human_flops(step.peak.flops), step.peak.source);
  text += fmt::format("\nmemory      {} of tensors on the largest rank\n",
                      metrics::human_bytes(step.memory_bytes));
  return text + metrics::time_table(step.of_ranks);
}

std::string as_json(const train::BenchedStep& step, int steps) {
  metrics::Times mean;
  for (const metrics::Times& times : step.of_ranks)
    for (const auto& [part, seconds] : times)
      metrics::add_seconds(mean, part, seconds / steps / static_cast<double>(step.of_ranks.size()));
  nlohmann::ordered_json json{{"name", "step"},
                              {"seconds", step.seconds},
                              {"flops_per_second", step.flops_per_second},
                              {"limit", nullptr},
                              {"tokens_per_second", step.tokens_per_second},
                              {"memory_bytes", step.memory_bytes}};
  if (step.peak.flops > 0) json["limit"] = step.peak.flops;
  for (const auto& [part, seconds] : mean) json["parts"][part] = seconds;
  return json_text(nlohmann::ordered_json::array({json}), 2) + "\n";
}

}  // namespace

int bench_step(const Args& job, int steps, bool json) {
  const auto measure = [&](comm::World& world, const AgreedJob& agreed, const Args&,
                           const train::OnFailure& failed) {
    const train::BenchedStep step = train::bench_step(world, agreed.plan, steps, failed);
    if (world.rank() == 0)
      std::cout << (json ? as_json(step, steps) : as_text(step, world.size())) << std::flush;
    return ExitCode::done;
  };
  return run_on_ranks(job, measure, &find_problems_but_data);
}

}  // namespace tessera::app
