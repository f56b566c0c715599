// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/loss_spikes.hpp"

#include <cmath>

namespace tessera::train {

void LossSpikes::forget_after(std::int64_t step) {
  while (!losses_.empty() && losses_.back().step > step) losses_.pop_back();
}

double LossSpikes::score(std::int64_t step, double loss) {
  double score = 0;
  if (losses_.size() >= kLeast) {
    const auto count = static_cast<double>(losses_.size());
    double sum = 0, squares = 0;
    for (const Loss& other : losses_) sum += other.value;
    const double mean = sum / count;
    for (const Loss& other : losses_) squares += (other.value - mean) * (other.value - mean);
    if (squares > 0) score = (loss - mean) / std::sqrt(squares / (count - 1));
  }
  losses_.push_back({step, loss});
  if (losses_.size() > kWindow) losses_.pop_front();
  return score;
}

}  // namespace tessera::train
