// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/fused_loss.hpp"

#include <algorithm>

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {
namespace {

constexpr std::int64_t kChunks = 16, kFewestChunks = 9;
constexpr std::int64_t kFastTokens = 256;                  ///< products of fewer are slower
constexpr std::int64_t kWorthIt = std::int64_t{64} << 20;  ///< bytes

/// In 9 chunks, statistics of rows leave the whole within 1/8 of the logits.
std::int64_t chunk_of(std::int64_t tokens) {
  return std::max<std::int64_t>(
      {1, tokens / kChunks, std::min(tokens / kFewestChunks, kFastTokens)});
}

/// Bytes that are there at once: logits of a chunk, and the weight's gradient, which is summed in
/// at least float32 and then rounded.
std::int64_t fused_bytes(const OutputShape& shape) {
  const std::int64_t weight = shape.vocab * shape.dim;
  return chunk_of(shape.tokens) * shape.vocab * shape.bytes +
         weight * (shape.bytes < 4 ? 4 + shape.bytes : shape.bytes);
}

}  // namespace

std::int64_t loss_chunk_tokens(FusedLoss how, const OutputShape& shape) {
  const std::int64_t whole = shape.tokens * shape.vocab * shape.bytes;
  const bool worth = whole >= fused_bytes(shape) + kWorthIt;
  const bool fused = how == FusedLoss::always || (how == FusedLoss::automatic && worth);
  return fused ? chunk_of(shape.tokens) : 0;
}

std::int64_t loss_chunk_tokens(const JobPlan& plan) {
  const model::Dimensions& model = plan.model.spec->dimensions;
  const BatchPlan& batch = plan.batch();
  return loss_chunk_tokens(plan.fused_loss,
                           {batch.microbatch_rows * batch.cut.positions(),
                            model.vocab / plan.layout.degree(mesh::Axis::tp), model.dim,
                            static_cast<std::int64_t>(size_of(plan.precision.compute))});
}

}  // namespace tessera::plan
