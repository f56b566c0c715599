// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "plan_pictures.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/planner/price.hpp"
#include "tessera/report/page.hpp"

namespace tessera::app {
namespace {

using planner::kGiB;
using report::Html;

Html first_figures(const PicturedJob& job, const planner::Price& price) {
  return report::figures(
      {{"step", fmt::format("{:.3f} s", price.step_seconds)},
       {fmt::format("tokens/s a {}", planner::unit_of(job.machine)),
        fmt::format("{:.0f}", price.tokens_per_second_per_gpu)},
       {"MFU, attention full and causal",
        fmt::format("{:.1f} %, {:.1f} %", 100 * price.mfu_full, 100 * price.mfu_causal)},
       {price.fits ? "memory" : "memory: DOES NOT FIT",
        fmt::format("{:.1f} of {:.1f} GiB", price.memory.total() / kGiB,
                    job.machine.memory_bytes / kGiB)}});
}

/// Parts of a whole, with their shares.
Html parts_table(const std::string& part, const std::string& unit,
                 const std::vector<std::pair<std::string, double>>& parts) {
  double all = 0;
  for (const auto& [name, amount] : parts) all += amount;
  report::Table table{{{part}, {unit, true}, {"share", true}}, {}};
  const auto add = [&](const std::string& name, double amount, bool strong) {
    table.rows.push_back(
        {{name, fmt::format("{:.4g}", amount), fmt::format("{:.1f} %", 100 * amount / all)},
         strong});
  };
  for (const auto& [name, amount] : parts)
    if (amount > 0) add(name, amount, false);
  if (all > 0) add("all", all, true);
  return report::table(table);
}

Html memory_table(const planner::Memory& memory) {
  std::vector<std::pair<std::string, double>> parts;
  for (const planner::MemoryTerm& term : planner::kMemoryTerms)
    parts.emplace_back(term.name, memory.*term.bytes / kGiB);
  return parts_table("memory of the rank that needs most", "GiB", parts);
}

}  // namespace

std::string picture_page(const std::string& name, const PicturedJob& job,
                         const planner::Price& price) {
  report::Page page(
      name_of(job),
      fmt::format("{} parameters, {} tokens a step; predicted by tessera plan with the stack {}",
                  metrics::human_count(job.work.model.params()),
                  metrics::human_count(job.work.step_tokens()), job.stack.name));
  page.section("Prediction", first_figures(job, price));
  page.section("Picture: " + name,
               report::picture(picture_of(name, job), name + " of the job; results are below"));
  page.section("Where it goes",
               report::grid({parts_table("time of the busiest rank", "seconds", price.seconds),
                             memory_table(price.memory)}));
  page.section("Job", report::folded("the job with all its values",
                                     report::preformatted(job.job.to_toml())));
  return page.html();
}

}  // namespace tessera::app
