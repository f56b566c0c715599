// SPDX-License-Identifier: Apache-2.0
// Model weights alone, out of a checkpoint or another program's files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model_spec/properties.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/plan/checkpoint_plan.hpp"

namespace tessera::train {

/// What weights are loaded into.
struct LoadTarget {
  parallel::Holdings holdings;
  const model::ModelSpec& model;
  mesh::DeviceMesh& mesh;
  /// of the tokenizer that is in use; 0: not known
  std::uint64_t tokenizer_hash = 0;
  /// what a config.json beside Hugging Face weights is compared with; empty: those of `model`
  model::Properties for_others = {};
};

/// Collective over the mesh. Fills this rank's masters and buffers from a step folder, or from the
/// newest valid checkpoint in a checkpoint folder; what `choice` omits stays as it is. Warns if the
/// model or the tokenizer was another one. Throws Error(checkpoint) when there is none or it is
/// damaged, Error(usage) when it is of another model.
void load_model(const LoadTarget& target, const std::filesystem::path& folder,
                plan::LoadChoice choice = {});

/// The same from a Hugging Face folder or one .safetensors file. Files without lm_head.weight take
/// the embedding for it. Throws Error(data) when they are of another model.
void load_hf_model(const LoadTarget& target, const std::filesystem::path& path,
                   const plan::LoadChoice& choice = {});

/// Collective: WeightOrigins::choose(), with what rank 0 finds in the job's folder.
plan::WeightOrigin weight_origin(const plan::WeightOrigins& origins, config::JobUse use,
                                 mesh::DeviceMesh& mesh);

/// load_model() or load_hf_model() by `from`. Warns of what a choice other than strict leaves as it
/// is.
void load_initial_weights(const LoadTarget& target, const plan::InitialState& from,
                          const plan::LoadChoice& choice);

/// The same of a job that does not train, by weight_origin(). Error(checkpoint) if it has neither
/// checkpoints nor an initial state.
void load_newest_weights(const LoadTarget& target, const plan::WeightOrigins& origins);

}  // namespace tessera::train
