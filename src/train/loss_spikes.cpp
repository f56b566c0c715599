// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/loss_spikes.hpp"

#include <cmath>
#include <numeric>

namespace tessera::train {

double LossSpikes::score(double loss) {
  double score = 0;
  if (losses_.size() >= kLeast) {
    const auto count = static_cast<double>(losses_.size());
    const double mean = std::accumulate(losses_.begin(), losses_.end(), 0.0) / count;
    double squares = 0;
    for (const double other : losses_) squares += (other - mean) * (other - mean);
    if (squares > 0) score = (loss - mean) / std::sqrt(squares / (count - 1));
  }
  losses_.push_back(loss);
  if (losses_.size() > kWindow) losses_.pop_front();
  return score;
}

}  // namespace tessera::train
