// When to save next, if checkpoint.interval = auto.
#pragma once

#include "tessera/checkpoint/checkpoint.hpp"

namespace tessera::train {

/// Young's interval, sqrt(2 x what a save costs x mean time between failures), by one rank's clock; all times in
/// seconds. A save costs what training was held for; the interval is no shorter than a save takes.
class AutoInterval {
 public:
  AutoInterval(double mean_time_between_failures, double now);
  /// A save begins, and with it the next interval.
  void begun(double now) { began_ = now; }
  /// What a save that was committed took says how long intervals are from now on.
  void measured(const checkpoint::SaveResult& result);
  double seconds() const { return seconds_; }
  bool is_due(double now) const { return now >= began_ + seconds_; }

 private:
  double mean_time_between_failures_, began_, seconds_;
};

}  // namespace tessera::train
