// SPDX-License-Identifier: Apache-2.0
// What the folder of a run says: steps, attempts, configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/metrics/prediction.hpp"
#include "tessera/metrics/run_folder.hpp"
#include "tessera/metrics/step_record.hpp"
#include "tessera/report/chart.hpp"

namespace tessera::report {

/// A key of the configuration and its value, as `tessera config show` prints it.
struct Setting {
  std::string key, value, default_value;
};

struct TrainingRun {
  std::filesystem::path folder;
  std::string name;  ///< the folder's last part
  /// in the order of steps; none before the first step is done
  std::vector<metrics::StepRecord> records;
  std::vector<metrics::Attempt> attempts;  ///< oldest first; none where there is no run.json
  /// every key; none where there is no config.toml that can be read
  std::vector<Setting> settings;
  std::string settings_problem;  ///< why there are none; empty: there are
  /// of the last attempt, if it has ended and its machine was known
  std::optional<metrics::Prediction> prediction = {};
};

/// Reads metrics.jsonl, run.json, prediction.json and config.toml. Throws Error(usage) for a folder
/// that is not a run, and Error(data) for one of the first three that is damaged. A configuration
/// that this program cannot read is a settings_problem.
TrainingRun read_run(const std::filesystem::path& folder);

/// The steps at which an attempt that wrote these records resumed, each once.
std::vector<std::int64_t> resumed_at(const TrainingRun& run);

/// A column of metrics.jsonl over the steps that have it: "loss", "lr", "grad_norm",
/// "tokens_per_second", "mfu", or one of the record's extra columns.
std::vector<Point> column(const TrainingRun& run, std::string_view name);

struct Totals {
  std::int64_t last_step = 0;
  std::int64_t tokens = 0;
  double seconds = 0;           ///< of all steps together
  double last_loss, best_loss;  ///< NaN: no finite loss
  std::int64_t best_step = 0;
  double tokens_per_second;       ///< median of the last 50 steps; NaN: no step
  double mfu;                     ///< likewise, a fraction
  std::int64_t memory_bytes = 0;  ///< the most of any step
  std::int64_t skipped_steps = 0;
};
Totals totals_of(const TrainingRun& run);

}  // namespace tessera::report
