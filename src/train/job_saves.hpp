// SPDX-License-Identifier: Apache-2.0
// The checkpoints that a run writes, and what is reported about them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reporter.hpp"
#include "save_and_stop.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/train/device_copies.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::train {

/// All methods are collective; every rank calls them at the same places.
class JobSaves {
 public:
  /// Saves what the trainer holds on `device`. The references must outlive this.
  JobSaves(const plan::JobPlan& plan, Trainer& trainer, comm::Communicator& control,
           at::Device device, SaveAndStop& policy, Reporter& reporter);

  /// Call before parameters or moments change. On a GPU, the change then waits for the copies of a
  /// save in progress.
  void hold_updates();
  /// Saves after step `step`, as the job's keys say; one that is in progress ends first.
  void save(std::int64_t step);
  /// Once a step: reports a checkpoint that has become durable. Never waits for a disk.
  void poll() { note(saver_.poll()); }
  /// Waits until the save that is in progress is durable.
  void finish();
  /// For a run that has done its last step before: makes up for what that lacks, the weights in
  /// Hugging Face's format.
  void complete(std::int64_t step);

 private:
  void save_last(std::int64_t step);
  std::filesystem::path exported(std::int64_t step) const;  ///< where export_last() writes
  void export_last(std::int64_t step);
  void note(const std::optional<checkpoint::SaveResult>& result);

  const plan::JobPlan& plan_;
  Trainer& trainer_;
  comm::Communicator& control_;
  SaveAndStop& policy_;
  Reporter& reporter_;
  std::unique_ptr<DeviceCopies> device_copies_;  ///< on a GPU
  checkpoint::Saver saver_;
  std::int64_t saving_step_ = 0;  ///< of the checkpoint begun last
};

}  // namespace tessera::train
