// SPDX-License-Identifier: Apache-2.0
#include "device_waits.hpp"

#include <functional>
#include <utility>

#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

/// Of a caller who never asks, so many waits are kept.
constexpr std::size_t kMostWaits = 8192;

using Clock = std::function<void(void* stream, std::uint64_t* at)>;

Clock& device_clock() {
  static auto* const instance = new Clock;  // outlives every communicator
  return *instance;
}

constexpr std::size_t kBlockWaits = 4096;

/// Memory may be pinned during a capture, too: no stream is given anything for it.
std::uint64_t* pinned_block() {
  auto mode = cudaStreamCaptureModeRelaxed;
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  void* block = nullptr;
  const cudaError_t code = cudaMallocHost(&block, 2 * kBlockWaits * sizeof(std::uint64_t));
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  check_cuda(code, "cudaMallocHost");
  return static_cast<std::uint64_t*>(block);
}

/// Those without an owner. None is freed, for which CUDA would wait until the device is idle. Not
/// of the pool of Pinned: a last copy of such a block may be under way, and no capture can wait for
/// it.
class SpareBlocks {
 public:
  std::uint64_t* take() {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return pinned_block();
    std::uint64_t* const block = blocks_.back();
    blocks_.pop_back();
    return block;
  }
  void give(const std::vector<std::uint64_t*>& blocks) {
    const std::lock_guard lock(mutex_);
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t*> blocks_;
};
SpareBlocks& spare_blocks() {
  static auto* const instance = new SpareBlocks;  // outlives every communicator
  return *instance;
}

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

void set_device_clock(Clock clock) { device_clock() = std::move(clock); }

GraphTimes::~GraphTimes() { spare_blocks().give(blocks_); }

std::uint64_t* GraphTimes::add() {
  if (waits_ == blocks_.size() * kBlockWaits) blocks_.push_back(spare_blocks().take());
  return of(waits_++);
}

double GraphTimes::seconds() const {
  double seconds = 0;
  for (std::size_t wait = 0; wait < waits_; ++wait) {
    const std::uint64_t* const times = of(wait);
    seconds += 1e-9 * static_cast<double>(times[1] - times[0]);
  }
  return seconds;
}

std::uint64_t* GraphTimes::of(std::size_t wait) const {
  return blocks_[wait / kBlockWaits] + 2 * (wait % kBlockWaits);
}

void DeviceWaits::wait(cudaStream_t stream, cudaEvent_t done, bool captured) {
  const auto hold = [&] {
    check_cuda(cudaStreamWaitEvent(stream, done, 0), "cudaStreamWaitEvent");
  };
  if (WaitsBeside::here() || (captured && !device_clock())) return hold();
  const std::lock_guard lock(mutex_);
  if (captured) {
    std::uint64_t* const times = captured_.add();
    device_clock()(stream, times);
    hold();
    return device_clock()(stream, times + 1);
  }
  Wait wait{events_->record(stream), {}};
  hold();
  wait.end = events_->record(stream);
  waits_.push_back(std::move(wait));
  if (waits_.size() > kMostWaits) seconds_ += take_ended();
}

void DeviceWaits::forget_captured() {
  const std::lock_guard lock(mutex_);
  captured_.clear();
  launch_end_.reset();
}

void DeviceWaits::launched(Event end) {
  const std::lock_guard lock(mutex_);
  launch_end_ = std::move(end);
}

double DeviceWaits::take() {
  const std::lock_guard lock(mutex_);
  double seconds = std::exchange(seconds_, 0.0) + take_ended();
  if (!launch_end_ || !has_ended(launch_end_)) return seconds;
  launch_end_.reset();
  return seconds + captured_.seconds();
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
