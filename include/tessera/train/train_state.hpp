// SPDX-License-Identifier: Apache-2.0
// The numbers that a run needs to resume, in addition to its tensors: what a checkpoint's manifest
// keeps.
#pragma once

#include <cstdint>

namespace tessera::train {

struct TrainState {
  std::int64_t step = 0;     ///< optimizer steps done, skipped ones included
  std::int64_t samples = 0;  ///< global samples before the next step's first one
  /// Updates made: the t of AdamW's bias correction. Less than `step` where steps were skipped, or
  /// where the run began with a new optimizer.
  std::int64_t optimizer_steps = 0;
  std::int64_t skipped_steps = 0;   ///< whose loss or gradient was not finite
  std::int64_t schedule_start = 0;  ///< the step at which the learning rate's schedule began
};

}  // namespace tessera::train
