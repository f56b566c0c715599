// SPDX-License-Identifier: Apache-2.0
// Weights of a checkpoint for other programs.
#pragma once

#include <filesystem>

#include "tessera/checkpoint/weight_source.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::hf {

/// Writes the model of a checkpoint as one .safetensors file with Hugging Face's names, layouts and
/// order of rows, in bounded memory: at most two matrices of one expert, or 64 MB of rows. A tied
/// output layer has no tensor of its own. Throws Error(checkpoint) naming a tensor that the
/// checkpoint lacks.
void export_weights(const checkpoint::WeightSource& source, const model::ModelSpec& model,
                    DType dtype, const std::filesystem::path& file);

}  // namespace tessera::hf
