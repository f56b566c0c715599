// SPDX-License-Identifier: Apache-2.0
// What a step took of memory and communication, on the rank that took the most.
#pragma once

#include <cstdint>

#include "tessera/metrics/step_record.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

class StepTraffic {
 public:
  /// The trainer must outlive this.
  explicit StepTraffic(Trainer& trainer) : trainer_(trainer) {}

  /// A step begins: traffic of validation belongs to none.
  void begin();
  /// Collective, at the end of a step. `waited`: seconds for which this rank waited in it.
  void measure(double waited);
  /// Adds the figures of the step that was measured last.
  void add_to(metrics::StepRecord& record) const;

 private:
  /// Of the rank that has the most of each.
  struct Worst {
    std::int64_t memory_bytes = 0, gathers = 0, gather_bytes = 0, kept_bytes = 0,
                 exposed_nanoseconds = 0;
  };

  Trainer& trainer_;
  Worst worst_;
  parallel::GatherCount gathers_before_;  ///< of this rank, when the step began
};

}  // namespace tessera::train
