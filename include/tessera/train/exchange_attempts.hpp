// SPDX-License-Identifier: Apache-2.0
// Which steps send fixed numbers of rows to experts
// (parallelism.expert_parallel_capacity_factor).
#pragma once

#include <algorithm>

namespace tessera::train {

/// After a step whose rows did not fit, as many are sent as are chosen for some steps: 1, then 2, 4
/// and at most 64, until one fits again. The same on all ranks that say the same.
class ExchangeAttempts {
 public:
  static constexpr int kMostSteps = 64;

  /// Asked once a step.
  bool fixed_now() {
    if (counted_ == 0) return true;
    --counted_;
    return false;
  }
  void fitted() { next_ = 1; }
  /// Steps until fixed numbers are tried again.
  int did_not_fit() {
    counted_ = next_;
    next_ = std::min(2 * next_, kMostSteps);
    return counted_;
  }

 private:
  int counted_ = 0, next_ = 1;
};

}  // namespace tessera::train
