// SPDX-License-Identifier: Apache-2.0
// Is a loss unlike those before it?
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tessera::train {

/// The z-score of each loss against the ones before it: its distance from their mean in their
/// standard deviations, over a window of steps. Spikes enter the window, too: after a true change
/// of level the scores calm down.
class LossSpikes {
 public:
  static constexpr std::size_t kWindow = 128, kLeast = 16;

  /// 0 while fewer than kLeast losses are known, or if these are all equal. `loss` must be finite;
  /// steps rise.
  double score(std::int64_t step, double loss);
  /// After a jump back to this step.
  void forget_after(std::int64_t step);

 private:
  struct Loss {
    std::int64_t step;
    double value;
  };
  std::deque<Loss> losses_;
};

}  // namespace tessera::train
