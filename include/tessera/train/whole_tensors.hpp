// SPDX-License-Identifier: Apache-2.0
// Whole tensors out of a running job, for debugging and proofs.
#pragma once

#include <filesystem>
#include <functional>

#include "tessera/comm/communicator.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::train {

/// Collective over `control`: for each parameter of the model, in order, rank 0's `take` gets the
/// whole of the tensor that `pick` chooses on every rank (master or gradient), float64, in Hugging
/// Face's row order. Everything passes through rank 0's memory, a parameter at a time.
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
