// SPDX-License-Identifier: Apache-2.0
// Bytes that a job is sure to take on a rank, counted before any of them is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// A lower bound: a job that needs no more may still not fit, one that needs more never does.
struct MemoryNeed {
  std::int64_t weights = 0;      ///< this rank's shard, in training.dtype
  std::int64_t gradients = 0;    ///< of the same type
  std::int64_t optimizer = 0;    ///< two moments
  std::int64_t gathered = 0;     ///< weights of the largest unit as layers read them
  std::int64_t activations = 0;  ///< of one microbatch: the inputs of all units, and the logits

  std::int64_t state() const { return weights + gradients + optimizer; }
  std::int64_t work() const { return gathered + activations; }
  std::int64_t total() const { return state() + work(); }
};

/// What matters in addition to model and mesh.
struct MemoryNeedOptions {
  PrecisionPlan precision;
  DType moments = DType::f32;
  bool trains = true;  ///< gradients and moments are kept
  bool offload = false;
  bool sequence_parallel = true;
  std::int64_t microbatch_tokens = 1;  ///< on this rank
  std::int64_t loss_chunk_tokens = 0;  ///< whose logits exist at once; 0 = all
  LinearPrecision linears = {};        ///< which weights are gathered in bytes
};

/// Of a rank whose pipeline stages have these cells of the model.
MemoryNeed memory_need(const model::ModelSpec& model, const mesh::Layout& layout,
                       const std::vector<Range>& cells, const MemoryNeedOptions& options);

/// Of a rank of the pipeline. Where cells are to be timed first, the least of any rank under the
/// cut `layers`: whatever is measured, some rank takes as much. Nothing where that cut does not
/// fit.
std::optional<MemoryNeed> memory_need(const JobPlan& plan, schedule::PipelineRank rank,
                                      bool trains = true);

enum class Remedy { more_ranks, more_memory };

/// Throws Error(environment) that names the parts and the remedy where `needed` bytes exceed `free`
/// ones; 0 free bytes are not known. `where`: "on rank 3 (node7)".
void check_need(const std::string& model, const MemoryNeed& need, std::int64_t needed,
                std::int64_t free, const std::string& where, Remedy remedy = Remedy::more_ranks);

}  // namespace tessera::plan
