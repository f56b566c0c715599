// SPDX-License-Identifier: Apache-2.0
// The folder of a run (job.dump_folder): metrics.jsonl, config.toml, run.json, loss.svg,
// checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::metrics {

inline constexpr const char* kMetricsFile = "metrics.jsonl";
/// In the folder of a sweep, whose folders are runs: where the sweep comes from.
inline constexpr const char* kSweepFile = "sweep.json";
/// Whether the folder is that of a sweep.
bool is_sweep_folder(const std::filesystem::path& folder);

/// One start of a run's process group: what run.json lists, so that a figure can be traced to what
/// made it.
struct Attempt {
  std::string id;               ///< of make_attempt_id()
  std::string started;          ///< UTC, ISO 8601; filled in by add_attempt when empty
  std::int64_t first_step = 1;  ///< > 1: resumed
  int ranks = 1;
  std::string mesh;                ///< e.g. "pp=2 dp_replicate=1 dp_shard=2 cp=1 tp=2"
  std::vector<std::string> hosts;  ///< each node once
  std::vector<std::string> command_line;
  /// e.g. {"tessera", "0.1.0"}, {"mpi", "Open MPI 4.1.4"}
  std::vector<std::pair<std::string, std::string>> versions;
};

/// "20261121T155419Z-1a2b3c4d": time of start and 32 random bits. Made on rank 0 and broadcast.
std::string make_attempt_id();

/// Made on rank 0 only.
class RunFolder {
 public:
  /// Creates the folder and what is above it, and tries to write there. Throws Error(environment):
  /// one message that names folder and reason.
  explicit RunFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const noexcept { return folder_; }
  std::filesystem::path metrics_file() const { return folder_ / metrics_; }
  std::filesystem::path loss_curve_file() const { return folder_ / "loss.svg"; }

  /// config.toml: the resolved configuration of the newest attempt.
  void write_config(std::string_view toml) const;
  /// For a start that the run will not resume from: metrics_file() is metrics.N.jsonl from now on,
  /// with the first N from 1 that is free. Returns it.
  std::filesystem::path keep_metrics_apart();
  /// For a run that starts from the beginning: renames a metrics.jsonl that holds something to
  /// metrics.N.jsonl. Returns the new name; empty where there was nothing to keep.
  std::filesystem::path set_metrics_aside() const;
  /// Appends to the "attempts" of run.json. A file that is not JSON is kept as run.json.damaged,
  /// with a warning.
  void add_attempt(Attempt attempt) const;

 private:
  std::filesystem::path free_metrics_file() const;

  std::filesystem::path folder_;
  std::filesystem::path metrics_ = kMetricsFile;
};

}  // namespace tessera::metrics
