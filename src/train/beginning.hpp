// SPDX-License-Identifier: Apache-2.0
// Where a run starts: from its own checkpoint, from another run's state or weights that the job
// names, or from random weights.
#pragma once

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::train {

/// Collective. Fills the trainer's weights and, where the job resumes from a checkpoint of its own
/// or branches from one of another run, the rest of its state. Else the steps done are 0. Throws
/// Error(checkpoint) or Error(usage) as load_state() and load_initial_weights() do. Error(usage)
/// also if training.steps is after a last checkpoint that holds the model alone, or not after the
/// step of which a branch starts.
LoadedState begin_state(const plan::JobPlan& plan, mesh::DeviceMesh& mesh, Trainer& trainer);

}  // namespace tessera::train
