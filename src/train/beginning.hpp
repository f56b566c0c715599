// SPDX-License-Identifier: Apache-2.0
// Where a run starts: from its own checkpoint, from weights that the job names, or from random
// weights.
#pragma once

#include <filesystem>

#include "tessera/config/job_config.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::train {

/// Collective. Fills the trainer's weights and, where the job resumes from a checkpoint under
/// `checkpoints`, the rest of its state. The steps done are 0 unless the job resumes. Throws
/// Error(checkpoint) or Error(usage) as load_state() and load_weights_of() do, and Error(usage) if
/// training.steps lies behind a last checkpoint that holds the model alone.
LoadedState begin_state(const config::JobConfig& job, const model::ModelSpec& model,
                        mesh::DeviceMesh& mesh, Trainer& trainer,
                        const std::filesystem::path& checkpoints);

}  // namespace tessera::train
