// SPDX-License-Identifier: Apache-2.0
#include "step_watch.hpp"

#include <fmt/format.h>

#include "tessera/metrics/human.hpp"

namespace tessera::train {

using Clock = std::chrono::steady_clock;

StepWatch::StepWatch(std::function<std::string()> where,
                     std::function<void(const std::string&)> say,
                     std::chrono::milliseconds interval)
    : where_(std::move(where)),
      say_(std::move(say)),
      interval_(interval),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void StepWatch::begin(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  step_ = step;
  began_ = Clock::now();
  changed_.notify_all();
}

void StepWatch::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  std::int64_t watched = 0;
  while (!stop.stop_requested()) {
    const auto another = [&] { return step_ != watched; };
    if (changed_.wait_for(lock, stop, interval_, another)) {
      watched = step_;
    } else if (watched != 0 && !stop.stop_requested()) {
      const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
      say_(fmt::format("step {} has been running for {}: {}", watched,
                       metrics::human_duration(seconds), where_()));
    }
  }
}

}  // namespace tessera::train
