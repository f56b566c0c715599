// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/job_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "fit_rules.hpp"
#include "key_rules.hpp"
#include "sections.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/plan/model_shape.hpp"
#include "time_hints.hpp"

namespace tessera::plan {
namespace {

/// All that a model's specification depends on.
std::string key_of(const config::JobConfig& job, std::int64_t vocabulary) {
  const config::Model& m = job.model;
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : "none";
  };
  return fmt::format("{}\n{}\n{}\n{} {} {} {} {}", m.name, m.flavor, m.hf_config.value_or(""),
                     vocabulary, number(m.moe_load_balance_coeff), number(m.moe_aux_loss_coeff),
                     number(m.moe_z_loss_coeff), job.debug.moe_force_load_balance);
}

/// As if it had just been read: problems then name the origins of keys.
config::Reading reading_of(const config::Resolved& resolved) {
  config::Reading reading;
  reading.resolved = resolved;
  for (const auto& [key, origin] : resolved.origins)
    if (origin != "default") reading.places[key] = {origin};
  return reading;
}

/// Of values that nobody has chosen, no rule says anything. Complains unless they may be misread.
bool asks_planner(config::Reading& job) {
  const std::vector<const config::Option*> open = config::left_to_planner(job.resolved.job);
  if (!open.empty() && job.problems.empty())
    job.complain_of({open.front()->key},
                    fmt::format("{} = \"auto\" has no value here: `tessera train`, `plan` and "
                                "`config check --ranks N` choose one",
                                open.front()->key));
  return !open.empty();
}

JobPlan assemble(const config::Resolved& resolved, const FitRules& fit) {
  const config::JobConfig& job = resolved.job;
  JobPlan plan;
  plan.run = run_plan(resolved);
  plan.device = device_plan(job);
  plan.comm = comm_plan(job);
  plan.precision = precision_plan(job.training);
  plan.linears = linear_precision(job);
  plan.arithmetic = arithmetic_plan(job);
  plan.sharding = sharding_plan(job);
  plan.tensor = tensor_parallel_plan(job);
  plan.fused_loss = fused_loss(job);
  plan.expert_rows = {job.parallelism.expert_parallel_capacity_factor.value_or(0),
                      job.parallelism.expert_parallel_comm_backend == "deepep"};
  plan.rotation = job.parallelism.context_parallel_rotate_method == "allgather"
                      ? Rotation::all_gather
                      : Rotation::ring;
  plan.recompute = recompute_policy(job.activation_checkpoint);
  plan.optimizer = optimizer_plan(job);
  plan.data = data_plan(job);
  plan.save = save_plan(job.checkpoint);
  fit.put_into(plan);
  plan.faults = fault_plan(job, plan.layout.world());
  plan.load = load_plan(resolved, *plan.model.spec);
  plan.run.time_hints = time_hints(resolved, plan);
  return plan;
}

}  // namespace

bool ShardingPlan::weighs_memory() const {
  using Kind = ReshardPolicy::Kind;
  return reshard.kind == Kind::automatic ||
         std::ranges::any_of(reshard_rules, [](const ReshardRule& rule) {
           return rule.policy.kind == Kind::automatic;
         });
}

bool ShardingPlan::reduces_each_microbatch(bool pipelined) const {
  return accumulation == Accumulation::sharded ||
         (accumulation == Accumulation::standard && !pipelined && !deterministic);
}

const MicrobatchPlan& JobPlan::microbatches_at(std::int64_t step) const {
  const MicrobatchPlan* now = &microbatches;
  for (const auto& [first, plan] : later_microbatches)
    if (first <= step) now = &plan;
  return *now;
}

int fewest_ranks(const config::Parallelism& p) {
  const std::int64_t tp = std::max(1, p.tensor_parallel_degree),
                     cp = std::max(1, p.context_parallel_degree);
  const std::int64_t lent = cp * (p.expert_tensor_parallel_degree > 1 ? 1 : tp);
  const std::int64_t ep = p.expert_parallel_degree;
  const std::int64_t shard =
      p.data_parallel_shard_degree == -1 ? ep / std::gcd(ep, lent) : p.data_parallel_shard_degree;
  const std::int64_t ranks = std::max(1, p.pipeline_parallel_degree) *
                             std::max(1, p.data_parallel_replicate_degree) *
                             std::max<std::int64_t>(1, shard) * cp * tp;
  return static_cast<int>(std::min<std::int64_t>(ranks, std::numeric_limits<int>::max()));
}

struct Planner::Known {
  ModelSource spec_of;
  std::map<std::string, std::shared_ptr<const model::ModelSpec>> models;  ///< by key_of()
};

Planner::Planner(ModelSource spec_of)
    : known_(std::make_unique<Known>(Known{std::move(spec_of), {}})) {}
Planner::~Planner() = default;

std::optional<JobPlan> Planner::plan(config::Reading& job, int ranks, std::int64_t vocabulary) {
  if (!job.whole || asks_planner(job)) return std::nullopt;
  config::find_unsupported(job);
  check_keys(job);
  FitRules fit(job, ranks, vocabulary, [&](const model::DecoderShape& shape) {
    auto& spec = known_->models[key_of(job.resolved.job, vocabulary)];
    if (!spec) spec = std::make_shared<const model::ModelSpec>(known_->spec_of(shape));
    return spec;
  });
  fit.all();
  if (!job.problems.empty()) return std::nullopt;
  return assemble(job.resolved, fit);
}

JobPlan plan_job(const config::Resolved& job, int ranks, std::int64_t vocabulary,
                 config::JobUse use) {
  config::Reading reading = reading_of(job);
  reading.use = use;
  auto plan = Planner().plan(reading, ranks, vocabulary);
  config::throw_if_wrong(reading.problems);
  return std::move(plan).value();
}

DataPlan plan_data(const config::Resolved& resolved) {
  config::Reading reading = reading_of(resolved);
  check_data_keys(reading);
  config::throw_if_wrong(reading.problems);
  return data_plan(resolved.job);
}

InferencePlan plan_inference(const config::Resolved& resolved, std::int64_t vocabulary) {
  config::Reading reading = reading_of(resolved);
  check_model_keys(reading);
  config::throw_if_wrong(reading.problems);
  InferencePlan plan{
      decoder_shape_of(resolved.job, vocabulary), precision_plan(resolved.job.training), {}, 0};
  if (resolved.origin("training.mixed_precision_param") != "command line")
    plan.precision.compute = plan.precision.master;
  plan.load = load_plan(resolved, model::spec_of(plan.shape));
  plan.trained_positions = resolved.job.training.seq_len;
  return plan;
}

}  // namespace tessera::plan
