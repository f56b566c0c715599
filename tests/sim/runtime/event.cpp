// SPDX-License-Identifier: Apache-2.0
#include "event.hpp"

#include "sim/sim.hpp"

namespace tessera::cudart {

void Record::complete() {
  const std::lock_guard lock(mutex_);
  complete_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

bool Record::is_complete() {
  const std::lock_guard lock(mutex_);
  return complete_;
}

void Record::wait() {
  std::unique_lock lock(mutex_);
  while (!complete_ && !sim::stopping()) changed_.wait_for(lock, std::chrono::milliseconds(100));
}

std::chrono::steady_clock::time_point Record::time() {
  const std::lock_guard lock(mutex_);
  return time_;
}

std::shared_ptr<Record> Event::record() {
  const std::lock_guard lock(mutex_);
  return record_;
}

void Event::set(std::shared_ptr<Record> record) {
  const std::lock_guard lock(mutex_);
  record_ = std::move(record);
}

}  // namespace tessera::cudart
