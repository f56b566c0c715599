// SPDX-License-Identifier: Apache-2.0
// What a run was expected to take beside what it took.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/metrics/time_table.hpp"

namespace tessera::metrics {

struct RunFigures {
  double step_seconds = 0;
  std::int64_t memory_bytes = 0;  ///< of the largest rank; 0: not known
  Times parts;  ///< of a step, by what a rank does or waits for; names are those of the time table
};

struct Prediction {
  std::string of;  ///< what the prediction knew of the machine: "2 cores of X"
  RunFigures predicted, measured;
  std::int64_t vocabulary = 0;  ///< of the model; 0: not known
};

/// A line of a table.
struct PredictionRow {
  std::string name, predicted, measured;
  std::string difference;  ///< "+7 %"; empty where one of them is nothing
};
/// Step, memory where it was measured, and waiting in all axes.
std::vector<PredictionRow> overview(const Prediction& prediction);
/// The parts of a step that either of them has, waiting by axis.
std::vector<PredictionRow> part_rows(const Prediction& prediction);

/// The part that adds most to the error of the step, in seconds: "backward"; empty: none.
std::string part_off_most(const Prediction& prediction);

/// Lines, each with its end: the overview, and the part whose prediction was off most.
std::string text_of(const Prediction& prediction);

/// In the folder of a run: prediction.json, and machine.toml, which is the machine's file. A run
/// has them once it has ended.
void write_prediction(const std::filesystem::path& folder, const Prediction& prediction,
                      const std::string& machine_file);
/// Nothing where there is none. Throws Error(data) for a file that is not of a prediction.
std::optional<Prediction> read_prediction(const std::filesystem::path& folder);
/// Removes those of an earlier attempt.
void forget_prediction(const std::filesystem::path& folder);
inline constexpr const char* kMachineFile = "machine.toml";

}  // namespace tessera::metrics
