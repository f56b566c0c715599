// SPDX-License-Identifier: Apache-2.0
// Hugging Face weights onto any mesh.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/train/load_choice.hpp"

namespace tessera::train {

/// Fills this rank's masters and buffers, but for those in `left_out`, from a Hugging Face folder
/// or one .safetensors file; no communication, each rank reads its own boxes. A file without
/// lm_head.weight takes the embedding for it. Throws Error(data) naming a missing or misshapen
/// tensor.
void load_hf_weights(const parallel::Holdings& holdings, const model::ModelSpec& model,
                     const std::filesystem::path& path, const std::set<std::string>& left_out = {});

/// What a choice leaves out of Hugging Face weights, by our names: what it excludes and, unless its
/// policy is strict, what the files lack or have in another shape. Under Policy::warn a table of
/// the latter. Reads headers alone.
struct HfMisfits {
  std::set<std::string> fqns;
  std::string table;
};
HfMisfits find_hf_misfits(const model::ModelSpec& model, const std::filesystem::path& path,
                          const LoadChoice& choice);

}  // namespace tessera::train
