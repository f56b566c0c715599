// SPDX-License-Identifier: Apache-2.0
// Says where a step is that takes long: nobody should have to guess whether a job computes or
// hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace tessera::train {

class StepWatch {
 public:
  /// `where` is called on a thread of this object; `say` gets the line.
  StepWatch(std::function<std::string()> where, std::function<void(const std::string&)> say,
            std::chrono::milliseconds interval = std::chrono::seconds(60));

  /// A step begins; the one before is over.
  void begin(std::int64_t step);

 private:
  void run(const std::stop_token& stop);

  std::function<std::string()> where_;
  std::function<void(const std::string&)> say_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t step_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace tessera::train
