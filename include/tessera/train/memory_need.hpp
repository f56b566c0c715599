// SPDX-License-Identifier: Apache-2.0
// Bytes that a job is sure to take on a rank, counted before any of them is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {

/// A lower bound: a job that needs no more may still not fit, one that needs more never does.
struct MemoryNeed {
  std::int64_t weights = 0;      ///< this rank's shard, in training.dtype
  std::int64_t gradients = 0;    ///< of the same type
  std::int64_t optimizer = 0;    ///< two moments
  std::int64_t gathered = 0;     ///< weights of the largest unit in the type of computation
  std::int64_t activations = 0;  ///< of one microbatch: the inputs of all units, and the logits

  std::int64_t state() const { return weights + gradients + optimizer; }
  std::int64_t work() const { return gathered + activations; }
  std::int64_t total() const { return state() + work(); }
};

/// Of a rank whose pipeline stages have these cells of the model.
MemoryNeed memory_need(const model::ModelSpec& model, const mesh::Layout& layout,
                       const std::vector<Range>& cells, const parallel::StageOptions& options);

enum class Remedy { more_ranks, more_memory };

/// Throws Error(environment) that names the parts and the remedy where `needed` bytes exceed `free`
/// ones; 0 free bytes are not known. `where`: "on rank 3 (node7)".
void check_need(const std::string& model, const MemoryNeed& need, std::int64_t needed,
                std::int64_t free, const std::string& where, Remedy remedy = Remedy::more_ranks);

/// Collective: throws, on all ranks, where a rank has less free memory than the job takes there
/// with stages of `options`, which freeze all parameters where nothing is trained. Free is its
/// share of what its GPU has among `sharers` ranks, or of what the node's memory and the control
/// group can give. Not of the split "measured", which is not known before weights are there.
void check_memory(const config::JobConfig& job, const model::ModelSpec& model,
                  mesh::DeviceMesh& mesh, const BatchPlan& plan,
                  const parallel::StageOptions& options, comm::World& world, int sharers);

/// The same of one process that holds the whole model and trains nothing.
void check_memory_alone(const model::ModelSpec& model, const mesh::Layout& layout,
                        parallel::StageOptions options);

}  // namespace tessera::train
