// SPDX-License-Identifier: Apache-2.0
// Progress of long work over a known amount of bytes: libraries report through a function, a
// terminal shows a bar.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

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

/// Lines for a log, one every `interval`, whether something was done meanwhile or not:
/// "data prepare: 52 %, 21.3 MiB/s, 3 s left".
class ProgressLines {
 public:
  ProgressLines(std::ostream& out, std::string label, std::chrono::milliseconds interval);
  ProgressLines(const ProgressLines&) = delete;
  ProgressLines& operator=(const ProgressLines&) = delete;
  void show(std::uint64_t done, std::uint64_t total);

 private:
  void write(const std::stop_token& stop, std::chrono::milliseconds interval);

  std::ostream& out_;
  std::string label_;
  std::mutex guard_;
  std::condition_variable_any stopped_;
  std::uint64_t done_ = 0, total_ = 0;
  std::jthread writer_;  ///< the last member: it uses the others
};

/// Progress that draws a bar on standard error when that is a terminal, and writes a line there
/// every 10 s otherwise.
Progress terminal_progress(const std::string& label);

}  // namespace tessera::data
