// SPDX-License-Identifier: Apache-2.0
// Plans of jobs for models and meshes of a test's own.
#pragma once

#include "tessera/plan/job_plan.hpp"

namespace tessera::test {

/// Does the rule for users refuse the job's number of microbatches, although it would run?
inline bool has_few_microbatches(const config::JobConfig& job, const mesh::Layout& layout) {
  try {
    plan::check_microbatches(job, layout.degree(mesh::Axis::pp),
                             plan::BatchPlan::make(job, layout));
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// The job on the ranks of `layout`, with that mesh, for `model`; it may have fewer microbatches
/// than `train` takes. Its data is never read.
inline plan::JobPlan planned(config::Resolved resolved, const model::ModelSpec& model,
                             const mesh::Layout& layout) {
  using mesh::Axis;
  config::JobConfig& job = resolved.job;
  config::Parallelism& p = job.parallelism;
  p.pipeline_parallel_degree = layout.degree(Axis::pp);
  p.data_parallel_replicate_degree = layout.degree(Axis::dp_replicate);
  p.data_parallel_shard_degree = layout.degree(Axis::dp_shard);
  p.context_parallel_degree = layout.degree(Axis::cp);
  p.tensor_parallel_degree = layout.degree(Axis::tp);
  p.expert_parallel_degree = layout.expert_degree();
  p.expert_tensor_parallel_degree = layout.experts_cut_by_tp() ? layout.degree(Axis::tp) : 1;
  if (!job.training.dataset_path) job.training.dataset_path = "not read";
  if (job.validation.enable && !job.validation.dataset_path)
    job.validation.dataset_path = "not read";
  const std::int64_t rows = p.pipeline_parallel_microbatch_size;
  const bool few = has_few_microbatches(job, layout);
  if (few) p.pipeline_parallel_microbatch_size = 1;
  config::Reading reading;
  reading.resolved = resolved;
  auto plan = plan::Planner([&](const model::DecoderShape&) {
                return model;
              }).plan(reading, layout.world(), 0);
  config::throw_if_wrong(reading.problems);
  if (few) {
    plan->microbatches.batch = plan::BatchPlan::make(job, layout, rows);
    plan->microbatches.pipeline = plan::pipeline_plan_of(
        job, model, plan->microbatches.pipeline.map, plan->microbatches.batch);
  }
  return std::move(plan).value();
}
inline plan::JobPlan planned(const config::JobConfig& job, const model::ModelSpec& model,
                             const mesh::Layout& layout) {
  return planned(config::Resolved{job, {}, {}, {}}, model, layout);
}

}  // namespace tessera::test
