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

/// The same from where a job's weights are: LoadPlan::from, or else its own checkpoints, which come
/// first in a branch. Warns of what a choice other than strict leaves as it is.
void load_weights_of(const plan::LoadPlan& plan, const plan::LoadChoice& choice,
                     const parallel::Holdings& holdings, const model::ModelSpec& model,
                     mesh::DeviceMesh& mesh);

}  // namespace tessera::train
