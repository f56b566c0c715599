// SPDX-License-Identifier: Apache-2.0
// What is known of one optimizer step: the row that metrics.jsonl, the console and the loss curve
// share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera::metrics {

/// Everything is of the whole job unless it says otherwise. A value that is not known is NaN.
struct StepRecord {
  std::int64_t step = 0;    ///< from 1
  double loss = 0;          ///< mean cross-entropy over the valid tokens of the global batch
  double grad_norm = 0;     ///< L2, before clipping
  double lr = 0;            ///< the rate that this step used
  std::int64_t tokens = 0;  ///< of this step
  double step_seconds = 0;
  double tokens_per_second = 0;
  double tps = 0;                 ///< tokens per second and device (TorchTitan's word)
  double mfu = 0;                 ///< a fraction: 0.41 is 41 %
  std::int64_t memory_bytes = 0;  ///< peak of the worst rank
  /// More columns, e.g. {"time/forward", 0.2}; none of the names above.
  std::vector<std::pair<std::string, double>> extra;
};

}  // namespace tessera::metrics
