// SPDX-License-Identifier: Apache-2.0
// Bytes of activations, of one microbatch on one rank: what the kernels of a block keep for their
// backward. Korthikanti et al., https://arxiv.org/abs/2205.05198, count the same way.
#pragma once

#include "tessera/planner/workload.hpp"

namespace tessera::planner {

/// Kept by a block between its forward and its backward.
double kept_bytes(const Workload& work, const Stack& stack, bool mixture);
/// The same where all of the block is recomputed so.
double kept_bytes(const Workload& work, const Stack& stack, bool mixture, Recompute mode);

/// The same of all blocks of a stage.
double kept_bytes(const Workload& work, const Stack& stack, const StageContent& stage);

/// Held for the gradients of weights alone, where a pipeline computes them later: of each product,
/// its inputs and its outputs' gradients, recomputed or not; and gradients that come early.
double owed_bytes(const Workload& work, const StageContent& stage);

/// Of the head, between a microbatch's forward and its backward.
double waiting_logits_bytes(const Workload& work);

/// Held by the backward of a block beside that: what is recomputed, gradients, gathered tokens.
double working_bytes(const Workload& work, const Stack& stack, bool mixture);

/// Logits of a microbatch or of a chunk of it, and what the loss makes of them.
double loss_bytes(const Workload& work, const Stack& stack);

}  // namespace tessera::planner
