// SPDX-License-Identifier: Apache-2.0
// Losses that keep the experts of a mixture evenly used.
//
// Slot balance [2 E + 1] collects, over the mixtures of the model and this rank's tokens of one
// microbatch: how often each expert was chosen, the sum of its probabilities, and the sum of
// squares of the log-partition function of the router's logits. It travels with the tokens, through
// pipeline cuts too, so that one loss sees all layers.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>

#include "tessera/model_spec/model_spec.hpp"

namespace tessera::model {

/// What one layer adds to the slot: `counts` [E] tokens of each expert, `probabilities` [T, E] that
/// sum to 1, `logits` [T, E].
at::Tensor balance_terms(const at::Tensor& counts, const at::Tensor& probabilities,
                         const at::Tensor& logits);

/// This rank's part of auxiliary * E sum_e f_e p_e + z * mean(log^2 sum exp logits), f and p being
/// means over `tokens` tokens (all of the microbatch) and the layers; the parts of all ranks add up
/// to the loss. `sum` replaces the counts of this rank's tokens by those of all ranks that hold
/// tokens of the microbatch.
at::Tensor balance_loss(const BalanceLoss& loss, const at::Tensor& slot, std::int64_t tokens,
                        const std::function<at::Tensor(const at::Tensor&)>& sum);

}  // namespace tessera::model
