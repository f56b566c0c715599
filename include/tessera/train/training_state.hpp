// SPDX-License-Identifier: Apache-2.0
// Everything that a run needs to resume: model, optimizer, schedule position, data position, seed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/saver.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/train_state.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

/// What load_state() gave to a trainer.
struct LoadedState {
  TrainState state;              ///< the trainer's from now on
  std::string left_out;          ///< of the checkpoint, for people
  std::string schedule_change;   ///< how learning rates differ from those the checkpoint was saved
                                 ///< for, for people
  std::filesystem::path folder;  ///< of the step; empty if nothing was loaded
  bool own = false;              ///< it is one of the run's own checkpoints
  std::string attention_change = {};  ///< as schedule_change, of YaRN
};

/// Collective. Writes step-%08d under `folder` with the trainer's tensors and `state`, its own or
/// that of a step before; blocks until it is committed.
checkpoint::SaveResult save_state(checkpoint::Saver& saver, Trainer& trainer,
                                  const plan::JobPlan& plan, const std::filesystem::path& folder,
                                  const TrainState& state);
/// Collective. Begins to write it; the trainer may continue as soon as this returns. See
/// checkpoint::Saver.
void begin_save_state(checkpoint::Saver& saver, Trainer& trainer, const plan::JobPlan& plan,
                      const std::filesystem::path& folder, const TrainState& state);

/// Collective. Writes step-%08d under `folder` with the model alone, in checkpoint.export_dtype;
/// blocks until it is committed.
checkpoint::SaveResult save_model_only(checkpoint::Saver& saver, Trainer& trainer,
                                       const plan::JobPlan& plan,
                                       const std::filesystem::path& folder, std::int64_t step);
/// Collective. The newest valid checkpoint under `folder` if it is one of these: nothing else of a
/// run is in it.
std::optional<checkpoint::CheckpointReader> open_model_only(comm::Communicator& control,
                                                            const std::filesystem::path& folder);

/// Collective. Loads a checkpoint under `folder` into the trainer, onto whatever mesh it has; the
/// next step continues with the next sample. It is the newest valid one that is not after
/// `latest_step` or, where choice.step says so, that of this step, unless newer ones were written
/// by a run that began with it, too. Empty when there is none. What `choice` excludes stays as it
/// is in the trainer, or starts from the beginning (moments' count, schedule, data); but a
/// checkpoint of a run that excluded the same when it began is loaded completely, so that a job
/// does so once, however often it is started. Throws Error(checkpoint) if all are damaged, or the
/// one asked for is not there or of a model with other tensors; Error(usage) if it was trained on
/// other data, or if there are newer checkpoints that are not of this run's history.
std::optional<LoadedState> load_state(Trainer& trainer, const std::filesystem::path& folder,
                                      const plan::LoadChoice& choice = {},
                                      std::int64_t latest_step = checkpoint::kAnyStep);

/// Collective. The same from another run's checkpoints, those of LoadPlan::from, for a branch: from
/// the step folder that it names, or the newest valid one. Error(usage) also if it holds only a
/// model.
std::optional<LoadedState> load_branch(Trainer& trainer,
                                       std::int64_t latest_step = checkpoint::kAnyStep);

}  // namespace tessera::train
