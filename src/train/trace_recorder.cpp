// SPDX-License-Identifier: Apache-2.0
#include "trace_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::train {

using metrics::monotonic_seconds;

void TraceRecorder::step(std::int64_t number, double begin, double end) {
  const std::lock_guard lock(mutex_);
  end_unit(end);
  spans_.push_back({fmt::format("step {}", number), 0, begin, end, -1});
}

void TraceRecorder::phase(metrics::Phase phase, double begin, double end) {
  const std::lock_guard lock(mutex_);
  end_unit(end);
  if (phase != metrics::Phase::other && end > begin)
    spans_.push_back({std::string(name_of(phase)), 0, begin, end, -1});
}

metrics::RankTrace TraceRecorder::take() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
  return {0, "", tracks_, std::exchange(spans_, {})};
}

int TraceRecorder::track_of(const std::string& axis) {
  const auto found = std::ranges::find(tracks_, axis);
  const auto index = found - tracks_.begin();
  if (found == tracks_.end()) {
    tracks_.push_back(axis);
    ends_.push_back(0);
  }
  return static_cast<int>(index);
}

void TraceRecorder::before(const comm::HookedCall& call) {
  if (call.size == 1) return;
  const std::lock_guard lock(mutex_);
  calls_[call.ticket] = {std::string(call.axis),
                         {std::string(name_of(call.info.call)), 0, monotonic_seconds(), 0,
                          call.info.call == comm::Call::group ? -1 : call.info.count}};
}

void TraceRecorder::waits(std::uint64_t ticket) noexcept {
  const std::lock_guard lock(mutex_);
  const auto call = calls_.find(ticket);
  if (call == calls_.end() || wait_) return;
  waited_for_ = ticket;
  wait_ = {"waiting in " + call->second.axis, 0, monotonic_seconds(), 0, -1};
}

void TraceRecorder::goes_on(std::uint64_t ticket) noexcept {
  const std::lock_guard lock(mutex_);
  if (ticket == waited_for_) end_wait(monotonic_seconds());
}

/// Calls of a communicator run one after the other: a call begins when the one before has ended.
void TraceRecorder::after(std::uint64_t ticket, comm::CallEnd) noexcept {
  const std::lock_guard lock(mutex_);
  const double now = monotonic_seconds();
  if (ticket == waited_for_) end_wait(now);
  const auto call = calls_.extract(ticket);
  if (!call) return;
  metrics::TraceSpan& span = call.mapped().span;
  span.track = track_of(call.mapped().axis);
  double& end = ends_[static_cast<std::size_t>(span.track)];
  span.begin = std::max(span.begin, end);
  span.end = end = std::max(now, span.begin);
  spans_.push_back(std::move(span));
}

void TraceRecorder::comes_to(std::string_view unit, std::string_view pass) noexcept {
  const std::lock_guard lock(mutex_);
  const double now = monotonic_seconds();
  end_unit(now);
  if (!unit.empty()) unit_ = {fmt::format("{} {}", unit, pass), 0, now, 0, -1};
}

void TraceRecorder::end_wait(double now) {
  waited_for_ = 0;
  if (!wait_) return;
  wait_->end = now;
  spans_.push_back(*std::exchange(wait_, std::nullopt));
}

void TraceRecorder::end_unit(double now) {
  end_wait(now);
  if (!unit_) return;
  unit_->end = now;
  spans_.push_back(*std::exchange(unit_, std::nullopt));
}

}  // namespace tessera::train
