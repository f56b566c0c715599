// SPDX-License-Identifier: Apache-2.0
// All that a job says, resolved once for a number of ranks: values, and nothing to parse.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/config/resolve.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model_spec/decoder_shape.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/batch_plan.hpp"
#include "tessera/plan/checkpoint_plan.hpp"
#include "tessera/plan/data_plan.hpp"
#include "tessera/plan/execution_plan.hpp"
#include "tessera/plan/expert_rows.hpp"
#include "tessera/plan/fused_loss.hpp"
#include "tessera/plan/linear_precision.hpp"
#include "tessera/plan/optimizer_plan.hpp"
#include "tessera/plan/pipeline_plan.hpp"
#include "tessera/plan/run_plan.hpp"
#include "tessera/plan/sharding_plan.hpp"

namespace tessera::plan {

struct ModelPlan {
  std::string name, flavor;  ///< "llama3", "8B"; of no meaning if it comes from a config.json
  bool from_file = false;
  model::DecoderShape shape;
  std::shared_ptr<const model::ModelSpec> spec;
};

/// A batch, and the pipeline that its microbatches pass.
struct MicrobatchPlan {
  BatchPlan batch;
  PipelinePlan pipeline;
};

struct JobPlan {
  RunPlan run;
  DevicePlan device;
  CommPlan comm;
  PrecisionPlan precision;
  LinearPrecision linears;
  ArithmeticPlan arithmetic;
  mesh::Layout layout;
  ModelPlan model;
  MicrobatchPlan microbatches;  ///< of the first step
  /// From these steps on (from 1), in order.
  std::vector<std::pair<std::int64_t, MicrobatchPlan>> later_microbatches;
  /// Sizes to choose from by their times in the first steps; empty: the size is given.
  std::vector<MicrobatchPlan> microbatch_trials;
  ShardingPlan sharding;
  TensorParallelPlan tensor;
  FusedLoss fused_loss = FusedLoss::never;
  Rotation rotation = Rotation::all_gather;
  ExpertRows expert_rows;
  RecomputePolicy recompute;
  OptimizerPlan optimizer;
  FaultPlan faults;
  DataPlan data;
  LoadPlan load;
  SavePlan save;

  /// Do ranks send each other's experts a fixed number of rows?
  bool fixes_rows() const { return expert_rows.capacity > 0 && layout.expert_degree() > 1; }
  const BatchPlan& batch() const { return microbatches.batch; }
  /// What step `step` (from 1) runs with.
  const MicrobatchPlan& microbatches_at(std::int64_t step) const;
};

/// The fewest ranks that a job's degrees need, with 1 for those that are -1, or as many as its
/// experts need.
int fewest_ranks(const config::Parallelism& degrees);

/// Makes plans. Keeps what jobs share, so that the points of a sweep cost little more than one job.
class Planner {
 public:
  using ModelSource = std::function<model::ModelSpec(const model::DecoderShape&)>;

  /// `spec_of` gives a model for the shape that a job asks for.
  explicit Planner(ModelSource spec_of = model::spec_of);
  ~Planner();

  /// For `ranks` ranks, 0 = the fewest. `vocabulary`: of the training data, 0 = unknown. Appends
  /// every problem of the job to `job.problems`, but not those of a key that was misread, and those
  /// that follow from one that is listed already. Without a plan if there is any problem. Reads
  /// model.hf_config and a schedule's file, nothing else.
  std::optional<JobPlan> plan(config::Reading& job, int ranks, std::int64_t vocabulary);

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

/// The same of a job that was checked before, as all ranks make it of what rank 0 gives them.
/// Throws one Error that lists all problems.
JobPlan plan_job(const config::Resolved& job, int ranks, std::int64_t vocabulary,
                 config::JobUse use = config::JobUse::training);

/// What a program needs that only uses a model, in one process.
struct InferencePlan {
  model::DecoderShape shape;
  PrecisionPlan precision;  ///< of computation, too, training.dtype unless the command line
                            ///< names another
  LoadPlan load;
  std::int64_t trained_positions = 0;  ///< of a sequence in training
};
/// `vocabulary`: of the tokenizer, 0 = unknown. Throws Error(usage) that lists all problems.
InferencePlan plan_inference(const config::Resolved& job, std::int64_t vocabulary);

/// What a program needs that only reads a job's data; the batches of validation are not in it.
/// Throws Error(usage) that lists all problems.
DataPlan plan_data(const config::Resolved& job);

}  // namespace tessera::plan
