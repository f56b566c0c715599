// SPDX-License-Identifier: Apache-2.0
// Progress of long work over a known amount of bytes: libraries report through a function, a
// terminal shows a bar.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace tessera::data {

/// Called now and then with the amount done and the whole; the last call has done == total. May be
/// empty.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// One line that redraws itself at most ten times a second: "encode  [#####.....]  52 %  21.3 MiB/s
/// ETA 3 s".
class ProgressBar {
 public:
  ProgressBar(std::ostream& out, std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& out_;
  std::string label_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_{};
  bool drawn_ = false;
};

/// Progress that draws a bar on standard error when that is a terminal, and does nothing otherwise.
Progress terminal_progress(const std::string& label);

}  // namespace tessera::data
