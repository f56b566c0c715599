// SPDX-License-Identifier: Apache-2.0
// Seconds to generate, check, time and write the schedules of 512 ranks with 2,048 microbatches.
#include <chrono>
#include <cstdio>
#include <string>

#include "tessera/schedule/csv.hpp"
#include "tessera/schedule/schedule.hpp"

namespace {

using namespace tessera::schedule;

constexpr int kRanks = 512, kMicrobatches = 2048;
constexpr double kTargetSeconds = 3;  ///< of make_schedule and find_fault together

/// Runs `work`, and adds its seconds to `seconds`.
auto timed(double& seconds, const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = work();
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

/// True if the schedule is right.
bool measure(const Traits& schedule) {
  const StageMap map = schedule.usual_map(kRanks);
  double orders = 0, transfers = 0, check = 0, simulation = 0, csv = 0;
  const ActionLists computations =
      timed(orders, [&] { return compute_orders(schedule.kind, map, kMicrobatches); });
  const ActionLists lists = timed(transfers, [&] { return with_transfers(computations, map); });
  const std::string fault = timed(check, [&] { return find_fault(lists, map, kMicrobatches); });
  const Timeline timeline = timed(simulation, [&] { return simulate(computations, map); });
  timed(csv, [&] { return to_csv(timeline); });
  const double seconds = orders + transfers + check;
  std::printf(
      "%-22s orders %.2f  transfers %.2f  check %.2f  together %.2f s of %.0f;  timeline %.2f  CSV "
      "%.2f s\n",
      std::string(schedule.name).c_str(), orders, transfers, check, seconds, kTargetSeconds,
      simulation, csv);
  return fault.empty() && seconds <= kTargetSeconds;
}

}  // namespace

int main() {
  bool good = true;
  for (const Traits& schedule : all_traits()) good = measure(schedule) && good;
  return good ? 0 : 1;
}
