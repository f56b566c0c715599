// SPDX-License-Identifier: Apache-2.0
// What a rank's communicators will count in a step of training, from the plan alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/comm/hooks.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// What travels with the loss of a step: votes of all ranks and, for each source of data, words of
/// an exact sum. train::LossSums makes sure that these are its numbers.
inline constexpr std::int64_t kVotes = 4, kSumWords = 69;

/// Calls of one kind on the communicators of one name.
struct TrafficRow {
  std::string axis;  ///< as Communicator::axis(): "dp_shard+cp"
  comm::Call call = comm::Call::all_reduce;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< as comm::Traffic counts them: what this rank puts in
  bool operator==(const TrafficRow&) const = default;
};

struct StepTraffic {
  std::vector<TrafficRow> rows;  ///< by axis and call; groups of one rank have none, but for efsdp
  std::string unknown;  ///< why the traffic is not predicted: there are no rows then; else empty
};

/// Of a step that train::Trainer::step() makes with the batch of the job's first step. What the
/// training loop exchanges around it is not part of it: reports, checkpoints, validation. Exact
/// where ranks communicate through MPI; NCCL orders sums with other calls.
StepTraffic step_traffic(const JobPlan& plan, mesh::Rank rank);

}  // namespace tessera::plan
