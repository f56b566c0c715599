// SPDX-License-Identifier: Apache-2.0
// The folder of a run, its length, and what it writes for people.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/metrics/time_table.hpp"

namespace tessera::plan {

struct MetricsPlan {
  std::int64_t log_freq = 10;  ///< steps between printed lines
  bool color = true;
  bool tensorboard = false;
  bool every_rank = false;  ///< writes event files
  std::filesystem::path tensorboard_folder;
  std::optional<double> peak_flops;  ///< FLOP/s of one device; none: known from it, or measured
};

struct TracePlan {
  std::filesystem::path folder;
  std::int64_t freq = 10, active_steps = 1;
};

struct MemorySnapshotPlan {
  std::filesystem::path folder;
  std::int64_t freq = 10;
};

struct RunPlan {
  std::filesystem::path folder;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  std::string toml;           ///< the job, with the origin of each value
  std::string absolute_toml;  ///< the same with absolute paths, to be read from anywhere
  bool prints_job = false;
  std::optional<std::filesystem::path> job_file;        ///< the job is written to it
  std::optional<std::filesystem::path> gradients_file;  ///< gets the gradients of step 1
  MetricsPlan metrics;
  std::optional<TracePlan> trace;
  std::optional<MemorySnapshotPlan> memory_snapshot;
  std::vector<metrics::TimeHint> time_hints;  ///< at most one for each row
};

}  // namespace tessera::plan
