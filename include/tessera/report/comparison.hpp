// SPDX-License-Identifier: Apache-2.0
// Runs compared: what came out, what was set differently, and from where on they differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/report/run.hpp"

namespace tessera::report {

/// Where the losses of a run leave those of the first run, over the steps that both have.
struct Divergence {
  std::int64_t common_steps = 0;
  /// the first step whose losses are not the same bits
  std::optional<std::int64_t> first_difference;
  /// the first step whose losses differ by more than the tolerance
  std::optional<std::int64_t> first_beyond;
  double largest = 0;  ///< relative difference
  std::int64_t largest_step = 0;
};

/// `tolerance`: of |a - b| / |a|. A loss that is finite in one run only counts as infinitely
/// different.
Divergence divergence(const TrainingRun& a, const TrainingRun& b, double tolerance);

/// A key whose value is not the same in all runs, with one value for each run. job.dump_folder does
/// not count.
struct SettingDifference {
  std::string key;
  std::vector<std::string> values;
};
std::vector<SettingDifference> different_settings(const std::vector<TrainingRun>& runs);

/// Shortest ends of the folders' paths that tell them apart.
std::vector<std::string> names_of(const std::vector<TrainingRun>& runs);

/// Tables for a terminal. `runs`: two or more.
std::string comparison_text(const std::vector<TrainingRun>& runs, double tolerance);
/// The same as a page, with curves over each other. `page`: where it will be, for its links.
std::string comparison_page(const std::vector<TrainingRun>& runs, double tolerance,
                            const std::filesystem::path& page);

}  // namespace tessera::report
