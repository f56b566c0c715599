// SPDX-License-Identifier: Apache-2.0
// Where the output layer and the loss are computed a chunk of tokens at a time
// (training.fused_linear_cross_entropy).
#pragma once

#include <cstdint>

namespace tessera::plan {

struct JobPlan;

enum class FusedLoss : std::uint8_t {
  automatic,  ///< where it saves much memory
  always,
  never,
};

/// The output layer's product on one rank, for one microbatch.
struct OutputShape {
  std::int64_t tokens;
  std::int64_t vocab;  ///< of this rank, up to rounding
  std::int64_t dim;
  std::int64_t bytes;  ///< of an element
};

/// Tokens of a chunk; 0: all logits at once. The same on all ranks that have the same shape.
std::int64_t loss_chunk_tokens(FusedLoss how, const OutputShape& shape);
/// Of the microbatches of a job's first step.
std::int64_t loss_chunk_tokens(const JobPlan& plan);

}  // namespace tessera::plan
