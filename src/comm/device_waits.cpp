// SPDX-License-Identifier: Apache-2.0
#include "device_waits.hpp"

#include <utility>

#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

/// Of a caller who never asks, so many waits are kept.
constexpr std::size_t kMostWaits = 8192;

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

void DeviceWaits::wait(cudaStream_t stream, cudaEvent_t done, bool captured) {
  const auto hold = [&] {
    check_cuda(cudaStreamWaitEvent(stream, done, 0), "cudaStreamWaitEvent");
  };
  if (WaitsBeside::here()) return hold();
  // Only external records of a graph have times.
  const unsigned flags = captured ? cudaEventRecordExternal : cudaEventRecordDefault;
  Wait wait{events_->record(stream, flags), {}};
  hold();
  wait.end = events_->record(stream, flags);
  const std::lock_guard lock(mutex_);
  if (captured) return captured_.push_back(std::move(wait));
  waits_.push_back(std::move(wait));
  if (waits_.size() > kMostWaits) seconds_ += take_ended();
}

void DeviceWaits::forget_captured() {
  const std::lock_guard lock(mutex_);
  captured_.clear();
  has_run_ = false;
}

void DeviceWaits::launched() {
  const std::lock_guard lock(mutex_);
  has_run_ = !captured_.empty();
}

double DeviceWaits::take() {
  const std::lock_guard lock(mutex_);
  double seconds = std::exchange(seconds_, 0.0) + take_ended();
  if (!has_run_ || !has_ended(captured_.back().end)) return seconds;
  has_run_ = false;
  for (const Wait& wait : captured_) seconds += seconds_between(wait.begin, wait.end);
  return seconds;
}

double DeviceWaits::take_ended() {
  double seconds = 0;
  while (!waits_.empty() && has_ended(waits_.front().end)) {
    seconds += seconds_between(waits_.front().begin, waits_.front().end);
    waits_.pop_front();
  }
  return seconds;
}

}  // namespace tessera::comm
