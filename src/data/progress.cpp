// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/progress.hpp"

#include <unistd.h>

#include <iostream>
#include <memory>

#include <fmt/format.h>

namespace tessera::data {
namespace {

constexpr int kWidth = 30;

std::string human_rate(double bytes_per_second) {
  constexpr double kKibi = 1024, kMebi = 1024 * kKibi;
  return bytes_per_second < kMebi ? fmt::format("{:.0f} KiB/s", bytes_per_second / kKibi)
                                  : fmt::format("{:.1f} MiB/s", bytes_per_second / kMebi);
}

}  // namespace

ProgressBar::ProgressBar(std::ostream& out, std::string label)
    : out_(out), label_(std::move(label)) {}

ProgressBar::~ProgressBar() {
  if (drawn_) out_ << '\n' << std::flush;
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  if (done < total && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - start_).count());
  const double rate = static_cast<double>(done) / seconds;
  const int filled = static_cast<int>(part * kWidth);
  out_ << fmt::format("\r{}  [{:#<{}}{:.<{}}]  {:3.0f} %  {}  ETA {:.0f} s  ", label_, "", filled,
                      "", kWidth - filled, 100 * part, human_rate(rate),
                      done == 0 ? 0.0 : static_cast<double>(total - done) / rate)
       << std::flush;
}

ProgressLines::ProgressLines(std::ostream& out, std::string label,
                             std::chrono::milliseconds interval)
    : out_(out),
      label_(std::move(label)),
      writer_([this, interval](const std::stop_token& stop) { write(stop, interval); }) {}

void ProgressLines::show(std::uint64_t done, std::uint64_t total) {
  const std::lock_guard lock(guard_);
  done_ = done;
  total_ = total;
}

void ProgressLines::write(const std::stop_token& stop, std::chrono::milliseconds interval) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(guard_);
  while (true) {
    stopped_.wait_for(lock, stop, interval, [] { return false; });
    if (stop.stop_requested()) return;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double done = static_cast<double>(done_), total = static_cast<double>(total_);
    if (done_ == 0)
      out_ << fmt::format("{}: {:.0f} s so far\n", label_, seconds) << std::flush;
    else
      out_ << fmt::format("{}: {:.0f} %, {}, {:.0f} s left\n", label_, 100 * done / total,
                          human_rate(done / seconds), (total - done) * seconds / done)
           << std::flush;
  }
}

Progress terminal_progress(const std::string& label) {
  if (::isatty(STDERR_FILENO) == 0) {
    constexpr std::chrono::seconds kInterval(10);
    const auto lines = std::make_shared<ProgressLines>(std::cerr, label, kInterval);
    return [lines](std::uint64_t done, std::uint64_t total) { lines->show(done, total); };
  }
  const auto bar = std::make_shared<ProgressBar>(std::cerr, label);
  return [bar](std::uint64_t done, std::uint64_t total) { bar->show(done, total); };
}

}  // namespace tessera::data
