// SPDX-License-Identifier: Apache-2.0
// Where this rank's time goes, from its first step to the end of the run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/metrics/late_ranks.hpp"
#include "tessera/metrics/time_table.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

/// Seconds for which this rank has waited so far, by the axis of the communicator.
metrics::Times waits_of(const mesh::DeviceMesh& mesh);

class RunTimes {
 public:
  /// The run begins. The trainer must outlive this.
  explicit RunTimes(Trainer& trainer) : trainer_(trainer), waits_before_(now()) {}

  /// Waits count from here to end_step().
  void begin_step();
  /// Collective.
  void end_step();
  /// Seconds for which this rank waited in the step that ended last.
  double waited() const { return waited_; }
  /// Outside of steps: "checkpoint", "validation".
  void spent(std::string_view on, double seconds);
  /// Who held up the steps, as a line with its end; empty if nobody did.
  std::string late_rank() const { return late_.note(); }
  /// Collective: the rows of each rank, on every rank.
  std::vector<metrics::Times> of_ranks(comm::Communicator& control) const;

 private:
  metrics::Times now() const { return waits_of(trainer_.mesh()); }
  metrics::Times rows() const;

  Trainer& trainer_;
  double began_ = metrics::monotonic_seconds(), step_began_ = began_, waited_ = 0;
  metrics::Times waits_before_, phases_, waits_, outside_;
  metrics::LateRanks late_;
};

}  // namespace tessera::train
