// SPDX-License-Identifier: Apache-2.0
// tessera schedule NAME | FILE.csv: a pipeline schedule as figures, picture and table; no ranks, no
// model.
#include <fmt/ranges.h>
#include <iostream>

#include "command.hpp"
#include "command_line.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/report/page.hpp"
#include "tessera/schedule/csv.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/schedule/timeline.hpp"

namespace {

using tessera::ExitCode;
namespace schedule = tessera::schedule;

constexpr double kShortest = 1e-3, kLongest = 1e6;  ///< durations, of which sums are exact enough

struct Wanted {
  std::string schedule, svg, csv, map;
  int ranks = 4, microbatches = 8, stages_per_rank = 0;
  bool pairs = false;
  schedule::Durations durations;
};

const schedule::Traits& schedule_of(const std::string& typed) {
  const std::string name = tessera::config::canonical_schedule(typed);
  if (const schedule::Traits* schedule = schedule::find_traits(name)) return *schedule;
  const auto names = schedule::names();
  const std::vector<std::string> known(names.begin(), names.end());
  tessera::fail(ExitCode::usage,
                "schedule {} is not known{}; take one of {}, or a file that ends in .csv", typed,
                tessera::did_you_mean(typed, known), fmt::join(known, ", "));
}

bool is_file(const Wanted& wanted) { return wanted.schedule.ends_with(".csv"); }

schedule::Table table_of(const Wanted& wanted) {
  const bool file = is_file(wanted);
  tessera::require(!wanted.pairs || !file, ExitCode::usage,
                   "--pairs is for DualPipeV; a file marks its pairs itself, as "
                   "(0F1;3B0)OVERLAP_F_B");
  if (file) return schedule::read_csv(wanted.schedule);
  const schedule::Traits& schedule = schedule_of(wanted.schedule);
  tessera::require(!wanted.pairs || schedule.kind == schedule::Kind::dual_pipe_v, ExitCode::usage,
                   "--pairs is for DualPipeV; {} has no pairs", schedule.name);
  const int each = wanted.stages_per_rank > 0 ? wanted.stages_per_rank : schedule.usual_stages();
  const auto map = wanted.map.empty() ? schedule.usual_map(wanted.ranks, each)
                                      : schedule::StageMap::parse(wanted.map, each * wanted.ranks,
                                                                  wanted.ranks, "--map");
  const auto pairs = wanted.pairs ? schedule::Pairs::together : schedule::Pairs::apart;
  return {compute_orders(schedule.kind, map, wanted.microbatches, pairs), map, wanted.microbatches};
}

void print(const std::string& name, const schedule::Table& table,
           const schedule::Timeline& timeline) {
  std::cout << fmt::format("{}: {} stages on {} ranks, {} microbatches, bubble {:.1f} %\n", name,
                           table.map.stages(), table.map.ranks(), table.microbatches,
                           100 * timeline.bubble());
  std::cout << fmt::format("{:<5}{:<14}{:>8}{:>14}{:>18}\n", "rank", "stages", "actions",
                           "own bubble", "peak activations");
  for (const schedule::PipelineRank rank : table.map.each_rank()) {
    std::cout << fmt::format("{:<5}{:<14}{:>8}{:>12.1f} %{:>18}\n", rank.value(),
                             fmt::format("{}", fmt::join(table.map.stages_of(rank), ",")),
                             table.computations[rank].size(), 100 * timeline.bubble_of(rank),
                             peak_activations(table.computations[rank]));
  }
}

void check(const schedule::Table& table, const std::string& name) {
  const std::string fault =
      find_fault(with_transfers(table.computations, table.map), table.map, table.microbatches);
  tessera::require(fault.empty(), ExitCode::usage, "{} cannot run: {}", name, fault);
}

int run(const tessera::app::Args& args) {
  Wanted wanted;
  tessera::app::Flags app(
      "Checks a pipeline schedule; prints its bubble and the number of activations that each rank "
      "keeps.",
      "schedule");
  app.add_option(
         "schedule", wanted.schedule,
         fmt::format("{}, or a CSV file in PyTorch's notation", fmt::join(schedule::names(), ", ")))
      .required();
  const auto ranks = app.add_option("--ranks", wanted.ranks, "pipeline ranks [4]").between(1, 4096);
  const auto microbatches =
      app.add_option("--microbatches", wanted.microbatches, "number of microbatches [8]")
          .between(1, 65536);
  const auto each = app.add_option("--stages-per-rank", wanted.stages_per_rank,
                                   "stages on each rank [1 or 2, as the schedule needs]")
                        .between(1, 64);
  const auto map =
      app.add_option("--map", wanted.map,
                     "rank of each stage: loop, v, or a comma-separated list [as the schedule "
                     "needs]");
  app.add_option("--forward", wanted.durations.forward, "duration of F, the forward pass [1]")
      .between(kShortest, kLongest);
  app.add_option("--input-gradient", wanted.durations.input,
                 "duration of I, the gradient of the input [1]; B takes I + W")
      .between(kShortest, kLongest);
  app.add_option("--weight-gradient", wanted.durations.weight,
                 "duration of W, the gradient of the weights [1]")
      .between(kShortest, kLongest);
  app.add_option("--transfer", wanted.durations.transfer, "duration of a transfer [0]")
      .between(0, kLongest);
  app.add_flag("--pairs", wanted.pairs,
               "run F and B of DualPipeV's pairs together, as jobs with expert parallelism do");
  app.add_option("-o,--out", wanted.svg, "draw the timeline (SVG)");
  app.add_option("--csv", wanted.csv, "write the schedule in PyTorch's notation");
  if (!app.parse(args)) return 0;
  if (is_file(wanted))
    tessera::require(!ranks.given() && !microbatches.given() && !each.given() && !map.given(),
                     ExitCode::usage,
                     "{} says its ranks, stages and microbatches itself; omit --ranks, "
                     "--microbatches, --stages-per-rank and --map",
                     wanted.schedule);
  const schedule::Table table = table_of(wanted);
  check(table, wanted.schedule);
  const auto timeline = simulate(table.computations, table.map, wanted.durations);
  print(wanted.schedule, table, timeline);
  const std::string title = fmt::format("{}, {} ranks, {} microbatches: bubble {:.1f} %",
                                        tessera::report::escape(wanted.schedule), table.map.ranks(),
                                        table.microbatches, 100 * timeline.bubble());
  if (!wanted.svg.empty())
    tessera::write_file_atomically(wanted.svg, to_svg(timeline, table.map, title));
  if (!wanted.csv.empty())
    tessera::write_file_atomically(wanted.csv, to_csv(simulate(table.computations, table.map)));
  return 0;
}

const tessera::app::CommandRegistration registration{"schedule",
                                                     "simulate and draw a pipeline schedule", &run};

}  // namespace
