// SPDX-License-Identifier: Apache-2.0
// Where a run starts: from its own checkpoint, from weights that the job names, or from random
// weights.
#pragma once

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::train {

/// Collective. Fills the trainer's weights and, where the job resumes from a checkpoint of its own,
/// the rest of its state. The steps done are 0 unless the job resumes. Throws Error(checkpoint) or
/// Error(usage) as load_state() and load_weights_of() do, and Error(usage) if training.steps is
/// after a last checkpoint that holds the model alone.
LoadedState begin_state(const plan::JobPlan& plan, mesh::DeviceMesh& mesh, Trainer& trainer);

}  // namespace tessera::train
