// SPDX-License-Identifier: Apache-2.0
// Hugging Face weights: import onto any mesh, export from a checkpoint, and whole tensors out of a
// running job.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/train/load_choice.hpp"

namespace tessera::train {

/// Row of a Hugging Face q or k projection that holds row `row` of ours. Ours interleaves the pairs
/// that RoPE rotates, theirs keeps the two halves of each head apart: ours (h, 2i + p) is theirs
/// (h, p * head_dim / 2 + i).
std::int64_t hf_row(std::int64_t row, std::int64_t head_dim);

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

/// Writes a checkpoint of `model` as one .safetensors file with Hugging Face's names, layouts and
/// order of rows, in bounded memory: at most two matrices of one expert, or 64 MB of rows. A tied
/// output layer has no tensor of its own.
void export_hf_weights(const checkpoint::Opened& checkpoint, const model::ModelSpec& model,
                       DType dtype, const std::filesystem::path& file);

/// Collective over `control`: for each parameter of the model, in order, rank 0's `take` gets the
/// whole of the tensor that `pick` chooses on every rank (master or gradient), float64, in Hugging
/// Face's row order. For debugging and proofs: everything passes through rank 0's memory, a
/// parameter at a time.
void for_each_whole(const parallel::Params& params, const model::ModelSpec& model,
                    comm::Communicator& control,
                    const std::function<at::Tensor(const parallel::ShardedParam&)>& pick,
                    const std::function<void(const model::ParamSpec&, const at::Tensor&)>& take);

/// Collective over `control`: the gradients of all parameters, whole, as one safetensors file that
/// rank 0 writes: in Hugging Face's names and row order; those of experts under our names, in our
/// layout.
void dump_gradients(const parallel::Params& params, const model::ModelSpec& model,
                    comm::Communicator& control, const std::filesystem::path& file);

}  // namespace tessera::train
