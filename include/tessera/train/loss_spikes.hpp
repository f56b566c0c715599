// SPDX-License-Identifier: Apache-2.0
// Is a loss unlike those before it?
#pragma once

#include <cstddef>
#include <deque>

namespace tessera::train {

/// The z-score of each loss against the ones before it: its distance from their mean in their
/// standard deviations, over a window of steps. Spikes enter the window, too: after a true change
/// of level the scores calm down.
class LossSpikes {
 public:
  static constexpr std::size_t kWindow = 128, kLeast = 16;

  /// 0 while fewer than kLeast losses are known, or if these are all equal. `loss` must be finite.
  double score(double loss);
  /// After a jump back.
  void forget() { losses_.clear(); }

 private:
  std::deque<double> losses_;
};

}  // namespace tessera::train
