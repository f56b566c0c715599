// SPDX-License-Identifier: Apache-2.0
// The loss curve of a run as one SVG file, readable on light and on dark pages, under 100 KB
// whatever the number of steps.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "tessera/metrics/step_record.hpp"

namespace tessera::report {

struct LossCurveOptions {
  std::string title = "Training loss";
  std::string subtitle = {};  ///< e.g. "debugmodel, 2 x 2 x 2, 8 ranks"; empty: none
  bool learning_rate = true;  ///< drawn faintly in a strip below
};

/// Raw loss thin, its moving mean bold, over steps; non-finite losses are gaps. Longer runs are
/// thinned to the lowest and highest value of each column. No records, or none finite: the axes and
/// a word that says so.
std::string loss_curve_svg(std::span<const metrics::StepRecord> records,
                           const LossCurveOptions& options = {});

/// Written aside and renamed. Throws Error(environment) naming the file.
void write_loss_curve(const std::filesystem::path& svg,
                      std::span<const metrics::StepRecord> records,
                      const LossCurveOptions& options = {});
/// From a metrics.jsonl.
void write_loss_curve(const std::filesystem::path& svg, const std::filesystem::path& metrics_jsonl,
                      const LossCurveOptions& options = {});

}  // namespace tessera::report
