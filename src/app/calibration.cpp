// SPDX-License-Identifier: Apache-2.0
#include "calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench.hpp"
#include "cold.hpp"
#include "tessera/base/error.hpp"
#include "two_part_fit.hpp"

namespace tessera::app {
namespace {

/// Shares of the time: the rest is for checkpoints and the start.
constexpr double kForCores = 0.7, kForLinks = 0.15;

struct MessageBuffers {
  std::vector<float> whole, part;
  MessageBuffers(std::int64_t bytes, int ranks)
      : whole(static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / 4 / ranks) * ranks)),
        part(whole.size() / static_cast<std::size_t>(ranks)) {}
  comm::Buffer all() { return {whole.data(), static_cast<std::int64_t>(whole.size()), DType::f32}; }
  comm::Buffer own() { return {part.data(), static_cast<std::int64_t>(part.size()), DType::f32}; }
};

}  // namespace

void measure_links(comm::World& world, double seconds, planner::Host& host) {
  const auto all = world.make(comm::Backend::mpi, "calibrate");
  const int ranks = world.size();
  std::vector<TimedWork> works;
  constexpr std::array<std::int64_t, 6> kSizes{1 << 10, 1 << 14, 1 << 17,
                                               1 << 19, 1 << 21, 1 << 23};
  const double each = seconds / (2 * kSizes.size());
  for (const std::int64_t bytes : kSizes) {
    Cold<MessageBuffers> sets(static_cast<double>(bytes) * (ranks + 1) / ranks,
                              [&] { return MessageBuffers(bytes, ranks); });
    const double moved = 4 * static_cast<double>(sets.next().whole.size()) * (ranks - 1) / ranks;
    const auto add = [&](const auto& call) {
      const auto once = [&] { call(sets.next()); };
      works.push_back(
          {moved, std::ceil(std::log2(ranks)), median_seconds(world.control(), once, each)});
    };
    add([&](MessageBuffers& of) { all->all_gather(of.own(), of.all()).wait(); });
    add([&](MessageBuffers& of) { all->reduce_scatter(of.all(), of.own()).wait(); });
  }
  const TwoRates rates = fit_two_rates(works, {host.rank_bytes_per_second, 1 / host.call_seconds});
  host.rank_bytes_per_second = rates.first;
  host.call_seconds = 1 / rates.second;
}

Calibration calibrate(comm::World& world, const CalibrationOptions& options) {
  Calibration out{planner::this_host(), {}};
  require(world.local_size() == world.size(), ExitCode::usage,
          "plan calibrate measures one node, and its ranks are on several; start it on one");
  require(world.size() <= out.host.cores, ExitCode::usage,
          "plan calibrate needs a core for each rank, and {} ranks share {}; start fewer",
          world.size(), out.host.cores);
  measure_cores(world, options.seconds * kForCores, out.host);
  if (world.size() > 1)
    measure_links(world, options.seconds * kForLinks, out.host);
  else
    out.assumed.emplace_back(
        "collectives: they need ranks, as in `tessera launch -n 2 -- plan calibrate`");
  if (world.size() < out.host.cores)
    out.assumed.push_back(fmt::format("{} of {} cores computed at once: start as many ranks",
                                      world.size(), out.host.cores));
  const auto mebibytes = static_cast<std::int64_t>(std::clamp(4 * options.seconds, 4.0, 128.0));
  const std::vector<BenchRow> saves = bench_checkpoint(world, options.folder, mebibytes << 20);
  out.host.checkpoint_bytes_per_second = saves.at(1).rate;
  out.assumed.emplace_back("switch_us: ranks that take turns on a core");
  return out;
}

}  // namespace tessera::app
