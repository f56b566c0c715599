// SPDX-License-Identifier: Apache-2.0
// One line a step for people; with a progress bar below the lines on a screen.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "tessera/metrics/flops.hpp"
#include "tessera/metrics/progress.hpp"
#include "tessera/metrics/step_record.hpp"
#include "tessera/metrics/terminal.hpp"

namespace tessera::metrics {

/// How the line of a step is laid out; the same for all lines of a run, so that columns keep their
/// place.
struct LineStyle {
  std::int64_t last_step = 1;  ///< where training ends
  int devices = 1;             ///< on one, tokens per second and device say nothing new
  int columns = 100;           ///< what does not fit is omitted, the least important first
  bool color = false;
};

/// The line of one step, without a line end. In 100 columns:
/// "step   7/100  loss  8.10342  grad_norm  1.2345  lr 2.00e-03  45.6k tok/s  mfu 12.3%  eta 2h03m"
/// Wider lines also have memory, and tokens per second and device.
std::string step_line(const StepRecord& record, double eta_seconds, const LineStyle& style);

class Console {
 public:
  /// `last_step`: where training ends; `first_step`: that of the first record. `peak` and the
  /// memory of the first step are named once, before the first line.
  Console(std::ostream& out, Terminal terminal, std::int64_t first_step, std::int64_t last_step,
          Peak peak, int devices = 1);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Prints the record's line when `print` (metrics.log_freq is the caller's), moves the bar in any
  /// case.
  void step(const StepRecord& record, double eta_seconds, bool print = true);
  /// Any other line, above the bar.
  void note(std::string_view line);
  /// Removes the bar; also done by the destructor.
  void finish();

 private:
  void print(std::string_view line);

  std::ostream& out_;
  Terminal terminal_;
  LineStyle style_;
  Peak peak_;
  bool peak_named_ = false;
  Progress progress_;
};

}  // namespace tessera::metrics
