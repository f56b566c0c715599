// SPDX-License-Identifier: Apache-2.0
// Where a test stands that does not end: a GPU that spins leaves nobody else to ask.
#pragma once

#include <execinfo.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "tessera/comm/world.hpp"

namespace tessera::test {

/// TESSERA_TEST_SECONDS: a test that takes longer ends the job with exit code 7. Each rank tells
/// its last calls and the stack of the thread that runs tests.
class TestDeadline final : public testing::EmptyTestEventListener {
 public:
  static constexpr int kExitCode = 7;

  /// On the thread that runs the tests.
  explicit TestDeadline(int rank)
      : rank_(rank), limit_(std::atof(std::getenv("TESSERA_TEST_SECONDS"))) {
    void* own = nullptr;
    static_cast<void>(backtrace(&own, 1));  // which loads what the handler must not
    struct sigaction action {};
    action.sa_handler = [](int) {
      std::array<void*, 64> frames{};
      backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), STDERR_FILENO);
    };
    sigaction(SIGUSR2, &action, nullptr);
    watcher_ = std::thread([this] { watch(); });
  }
  ~TestDeadline() override {
    note("", true);
    watcher_.join();
  }
  static bool wanted() { return std::getenv("TESSERA_TEST_SECONDS") != nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  void OnTestStart(const testing::TestInfo& test) override {
    note(std::string(test.test_suite_name()) + "." + test.name());
  }
  void OnTestEnd(const testing::TestInfo&) override { note(""); }

  void note(const std::string& test, bool over = false) {
    {
      const std::lock_guard lock(mutex_);
      test_ = test;
      over_ = over;
      begun_ = Clock::now();
    }
    changed_.notify_all();
  }

  void watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return over_ || !test_.empty(); });
      if (over_) return;
      const std::string test = test_;
      const auto begun = begun_;
      if (changed_.wait_for(lock, limit_, [&] { return over_ || begun_ != begun; })) continue;
      std::fprintf(stderr, "rank %d: %s still runs after %.0f s; its calls and its stack:\n%s",
                   rank_, test.c_str(), limit_.count(), comm::Watchdog::recent_calls().c_str());
      pthread_kill(main_, SIGUSR2);
      std::this_thread::sleep_for(std::chrono::seconds(3));  // other ranks tell theirs
      _exit(kExitCode);
    }
  }

  const int rank_;
  const std::chrono::duration<double> limit_;
  const pthread_t main_ = pthread_self();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_;
  Clock::time_point begun_ = Clock::now();
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace tessera::test
