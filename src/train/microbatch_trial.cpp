// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/microbatch_trial.hpp"

#include <algorithm>

namespace tessera::train {

void MicrobatchTrial::took(double seconds, bool next_fits) {
  if (done() || steps_++ == 0) return;
  seconds_ = steps_ == 2 ? seconds : std::min(seconds_, seconds);
  if (steps_ <= kCounted) return;
  if (best_ == 0 || seconds_ < best_seconds_) {
    best_ = sizes_[current_];
    best_seconds_ = seconds_;
  }
  current_ = next_fits ? current_ + 1 : sizes_.size();
  steps_ = 0;
}

}  // namespace tessera::train
