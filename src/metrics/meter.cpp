// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/meter.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::metrics {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double monotonic_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Window::add(double value) {
  if (values_.size() < length_) return values_.push_back(value);
  values_[next_] = value;
  next_ = (next_ + 1) % length_;
}

double Window::median() const {
  if (values_.empty()) return unknown;
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

void StepMeter::add(std::int64_t tokens, double seconds) {
  window_.add(seconds);
  total_tokens_ += tokens;
  ++steps_;
  total_seconds_ += seconds;
}

double StepMeter::eta_seconds(std::int64_t steps_left) const {
  return static_cast<double>(std::max<std::int64_t>(0, steps_left)) * window_.median();
}

std::string_view name_of(Phase phase) noexcept {
  constexpr std::array<std::string_view, phase_count> names{
      "data", "forward", "backward", "communication", "optimizer", "checkpoint", "device", "other"};
  return names[static_cast<std::size_t>(phase)];
}

PhaseTimer::PhaseTimer() : PhaseTimer(&monotonic_seconds) {}

PhaseTimer::PhaseTimer(Clock clock, Clock waited)
    : clock_(std::move(clock)),
      waited_(std::move(waited)),
      since_(clock_()),
      waited_since_(waited_so_far()) {}

double PhaseTimer::seconds(Phase phase) {
  charge();
  return seconds_[static_cast<std::size_t>(phase)];
}

void PhaseTimer::reset() {
  charge();
  seconds_.fill(0);
}

void PhaseTimer::observe(Observer observer) {
  charge();
  observer_ = std::move(observer);
}

Phase PhaseTimer::enter(Phase phase) {
  charge();
  return current_.exchange(phase);
}

void PhaseTimer::charge() {
  const double now = clock_(), waited = waited_so_far();
  const Phase phase = current_.load();
  if (observer_) observer_(phase, since_, now);
  seconds_[static_cast<std::size_t>(phase)] +=
      now - std::exchange(since_, now) - (waited - std::exchange(waited_since_, waited));
}

}  // namespace tessera::metrics
