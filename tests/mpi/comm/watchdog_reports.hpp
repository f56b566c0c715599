// SPDX-License-Identifier: Apache-2.0
// What a watchdog reports, for tests that wait for it.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mpi/comm/mpi_main.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::test {

/// Reports of a watchdog that looks ten times a second or more, as long as this lives.
class WatchdogReports {
 public:
  explicit WatchdogReports(std::chrono::milliseconds timeout)
      : watchdog_(timeout, world().rank(), [this](const Error& report) {
          const std::lock_guard lock(mutex_);
          all_.emplace_back(report.what());
        }) {}
  /// The first report, within half a minute.
  std::string first() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      {
        const std::lock_guard lock(mutex_);
        if (!all_.empty()) return all_.front();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "no report";
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
  comm::Watchdog watchdog_;
};

}  // namespace tessera::test
