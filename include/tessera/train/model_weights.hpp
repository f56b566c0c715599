// SPDX-License-Identifier: Apache-2.0
// Model weights alone, out of a checkpoint or another program's files.
#pragma once

#include <filesystem>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/plan/checkpoint_plan.hpp"

namespace tessera::train {

/// Collective over the mesh. Fills this rank's masters and buffers from a step folder, or from the
/// newest valid checkpoint in a checkpoint folder; what `choice` omits stays as it is. Throws
/// Error(checkpoint) when there is none or it is damaged, Error(usage) when it is of another model.
void load_model(const parallel::Holdings& holdings, const model::ModelSpec& model,
                mesh::DeviceMesh& mesh, const std::filesystem::path& folder,
                plan::LoadChoice choice = {});

/// The same from a Hugging Face folder or one .safetensors file. Files without lm_head.weight take
/// the embedding for it. Throws Error(data) when they are of another model.
void load_hf_model(const parallel::Holdings& holdings, const model::ModelSpec& model,
                   mesh::DeviceMesh& mesh, const std::filesystem::path& path,
                   const plan::LoadChoice& choice = {});

/// The same from LoadPlan::from, which must be there. Warns of what a choice other than strict
/// leaves as it is.
void load_initial_weights(const plan::LoadPlan& plan, const plan::LoadChoice& choice,
                          const parallel::Holdings& holdings, const model::ModelSpec& model,
                          mesh::DeviceMesh& mesh);

/// The same of a job that does not train: from the newest of its own checkpoints, or the step that
/// the command line names. From LoadPlan::from if it has none, or if the command line names that.
/// Error(usage) if it names both.
void load_newest_weights(const plan::LoadPlan& plan, const parallel::Holdings& holdings,
                         const model::ModelSpec& model, mesh::DeviceMesh& mesh);

}  // namespace tessera::train
