// SPDX-License-Identifier: Apache-2.0
#include "time_hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tessera/schedule/traits.hpp"

namespace tessera::plan {
namespace {

using mesh::Axis;

class Hints {
 public:
  Hints(const config::Resolved& job, const JobPlan& plan) : job_(job), plan_(plan) {}

  std::vector<metrics::TimeHint> all() && {
    tensor_parallel();
    pipeline();
    for (const std::string_view axis : {"dp_shard", "dp_shard+cp"}) sharded(axis);
    context_parallel();
    add(true, "data", "training.dataloader.num_workers", " 2");
    add(plan_.save.enabled && plan_.save.waits, "checkpoint", "checkpoint.async_mode", " async");
    return std::move(hints_);
  }

 private:
  /// Unless the job sets the key, or the row has a hint.
  void add(bool helps, std::string_view row, std::string_view key, std::string_view value) {
    if (!helps || job_.origin(std::string(key)) != "default") return;
    if (std::ranges::find(hints_, row, &metrics::TimeHint::row) == hints_.end())
      hints_.push_back({std::string(row), fmt::format("--{}{}", key, value)});
  }

  void waits(bool helps, std::string_view axis, std::string_view key, std::string_view value) {
    add(helps, std::string(metrics::kWaitingIn) + std::string(axis), key, value);
  }

  void tensor_parallel() {
    waits(plan_.layout.degree(Axis::tp) > 1 && plan_.tensor.sequence_parallel, "tp",
          "parallelism.enable_async_tensor_parallel", "");
  }

  /// ZBH1 runs on the stages and microbatches of 1F1B.
  void pipeline() {
    const schedule::Traits* traits = schedule::find_traits(plan_.microbatches.pipeline.name);
    waits(traits && traits->kind == schedule::Kind::one_f_one_b, "pp",
          "parallelism.pipeline_parallel_schedule", " ZBH1");
  }

  /// Either frees less, or reduces once a step.
  void sharded(std::string_view axis) {
    using Kind = ReshardPolicy::Kind;
    const bool pipelined = plan_.layout.degree(Axis::pp) > 1;
    waits(plan_.sharding.reshard.kind == Kind::standard && !pipelined, axis,
          "parallelism.fsdp_reshard_after_forward", " never");
    waits(!pipelined && !plan_.sharding.deterministic &&
              plan_.sharding.accumulation == Accumulation::standard &&
              plan_.batch().microbatches_a_step() > 1,
          axis, "parallelism.fsdp_gradient_accumulation", " unsharded");
  }

  void context_parallel() {
    waits(plan_.rotation == Rotation::all_gather, "cp",
          "parallelism.context_parallel_rotate_method", " ring");
  }

  const config::Resolved& job_;
  const JobPlan& plan_;
  std::vector<metrics::TimeHint> hints_;
};

}  // namespace

std::vector<metrics::TimeHint> time_hints(const config::Resolved& job, const JobPlan& plan) {
  return Hints(job, plan).all();
}

}  // namespace tessera::plan
