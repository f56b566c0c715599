// SPDX-License-Identifier: Apache-2.0
// A progress bar on the last line of a screen, for anything that counts: steps, documents, bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "tessera/metrics/terminal.hpp"

namespace tessera::metrics {

/// Draws "label ━━━━━━╸─────  45 %  4.1k/9.2k  1.2k/s  eta 3m05s" and draws it over again, at most
/// ten times a second. Writes nothing at all where the terminal is not interactive. Erases itself
/// at the end, so that only what was printed above remains.
class Progress {
 public:
  using Clock = std::function<double()>;  ///< seconds, rising

  /// `total` > 0: what done() will reach; `start`: what was done before (a resumed run), which
  /// counts for the bar and not for the speed.
  Progress(std::ostream& out, Terminal terminal, std::string label, std::int64_t total,
           std::int64_t start = 0);
  Progress(std::ostream& out, Terminal terminal, std::string label, std::int64_t total,
           std::int64_t start, Clock clock);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done);  ///< cheap: looks at the clock, mostly draws nothing
  void erase();   ///< clears the bar for a line to be printed; the next draw() or update() brings
                  ///< the bar back
  void draw();    ///< now, whatever the clock says
  void finish();  ///< erased for good

  double eta_seconds() const;  ///< from the speed since the start; NaN before anything was done

 private:
  std::string line() const;

  std::ostream& out_;
  Terminal terminal_;
  std::string label_;
  std::int64_t total_;
  std::int64_t start_;
  std::int64_t done_;
  Clock clock_;
  double began_;
  double drawn_at_;
  bool visible_ = false;
  bool finished_ = false;
};

}  // namespace tessera::metrics
