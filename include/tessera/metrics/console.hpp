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

/// The line of one step, without a line end; columns keep their place while steps have no more digits than `last_step`:
/// "step   7/100  loss  8.10342  grad_norm   1.2345  lr 2.000e-03  45.6k tok/s  5.70k tok/s/device  mfu 12.3%  mem 1.23
/// GiB  eta 2h03m"
std::string step_line(const StepRecord& record, std::int64_t last_step, double eta_seconds, bool color);

class Console {
 public:
  /// `last_step`: where training ends; `first_step`: that of the first record. `peak` is named once, before the first
  /// line.
  Console(std::ostream& out, Terminal terminal, std::int64_t first_step, std::int64_t last_step, Peak peak);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Prints the record's line when `print` (metrics.log_freq is the caller's), moves the bar in any case.
  void step(const StepRecord& record, double eta_seconds, bool print = true);
  /// Any other line, above the bar.
  void note(std::string_view line);
  /// Removes the bar; also done by the destructor.
  void finish();

 private:
  void print(std::string_view line);

  std::ostream& out_;
  Terminal terminal_;
  std::int64_t last_step_;
  Peak peak_;
  bool peak_named_ = false;
  Progress progress_;
};

}  // namespace tessera::metrics
