// SPDX-License-Identifier: Apache-2.0
// Meters of time: how long a step takes, where it goes, when the run ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace tessera::metrics {

/// Seconds on a clock that never goes back; only differences mean anything.
double monotonic_seconds() noexcept;

/// Median of the last values: one slow step (a checkpoint, a page fault storm) does not
/// move the median.
class Window {
 public:
  explicit Window(std::size_t length = 50) : length_(length) {}
  void add(double value);
  double median() const;  ///< NaN before the first value
  std::size_t size() const noexcept { return values_.size(); }

 private:
  std::size_t length_;
  std::size_t next_ = 0;
  std::vector<double> values_;
};

/// Speed of a run: fed once a step.
class StepMeter {
 public:
  void add(std::int64_t tokens, double seconds);

  std::int64_t total_tokens() const noexcept { return total_tokens_; }  ///< since the process began
  std::int64_t steps() const noexcept { return steps_; }
  double total_seconds() const noexcept { return total_seconds_; }
  double median_step_seconds() const { return window_.median(); }
  /// Seconds until `steps_left` more steps are done, at the window's median; NaN before the first
  /// step.
  double eta_seconds(std::int64_t steps_left) const;

 private:
  Window window_;
  std::int64_t total_tokens_ = 0, steps_ = 0;
  double total_seconds_ = 0;
};

/// Parts of a step. `communication` adds up gradients and the loss after backward.
enum class Phase : std::uint8_t {
  data,
  forward,
  backward,
  communication,
  optimizer,
  checkpoint,
  device,  ///< the host waits for a GPU
  other
};
inline constexpr std::size_t phase_count = 8;
std::string_view name_of(Phase phase) noexcept;

/// Where time goes. Phases nest: time inside an inner phase counts for that one alone, so the sum
/// of all is the time since reset(), without the time that `waited` counts. One thread at a time;
/// backward may hand it to the autograd thread while it waits for it.
class PhaseTimer {
 public:
  using Clock = std::function<double()>;
  /// Called with each piece of a phase that ends, in the clock's seconds.
  using Observer = std::function<void(Phase phase, double begin, double end)>;

  /// Ends its phase when it goes out of scope. Scopes end in the reverse order of their start.
  class Scope {
   public:
    Scope(PhaseTimer& timer, Phase phase) : timer_(timer), before_(timer.enter(phase)) {}
    ~Scope() { timer_.enter(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimer& timer_;
    Phase before_;
  };

  PhaseTimer();
  /// `waited`: seconds so far that count for no phase, such as those of waiting for other ranks.
  explicit PhaseTimer(Clock clock, Clock waited = {});

  [[nodiscard]] Scope time(Phase phase) { return {*this, phase}; }
  double seconds(Phase phase);                         ///< since reset(), with what runs now
  Phase current() const noexcept { return current_; }  ///< any thread may ask
  void observe(Observer observer);                     ///< from now on; an empty one ends it
  void reset();                                        ///< all to zero; open scopes stay open

 private:
  Phase enter(Phase phase);
  void charge();

  double waited_so_far() const { return waited_ ? waited_() : 0; }

  Clock clock_, waited_;
  Observer observer_;
  std::atomic<Phase> current_ = Phase::other;
  double since_, waited_since_;
  std::array<double, phase_count> seconds_{};
};

}  // namespace tessera::metrics
