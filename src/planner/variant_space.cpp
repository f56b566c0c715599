// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/variant_space.hpp"

#include <algorithm>

#include "from_plan.hpp"
#include "tessera/base/error.hpp"
#include "tessera/plan/fused_loss.hpp"
#include "tessera/plan/model_fit.hpp"
#include "tessera/plan/pipeline_plan.hpp"
#include "tessera/plan/stage_ranges.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::planner {
namespace {

using mesh::Axis;

std::vector<int> divisors(int number, int most) {
  std::vector<int> out;
  for (int d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) out.push_back(d);
  return out;
}

/// `own`, then the others.
std::vector<int> own_first(int own, const std::vector<int>& all) {
  std::vector<int> out{own};
  for (const int value : all)
    if (value != own) out.push_back(value);
  return out;
}

bool tensor_parallelism_fits(const model::ModelSpec& model, int tp) {
  try {
    plan::check_tensor_parallel_fits(model, tp);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

VariantSpace::VariantSpace(const config::Resolved& job, const plan::JobPlan& plan,
                           const Machine& machine, const Stack& stack)
    : job_(job), plan_(plan), stack_(stack), work_(workload_of(plan, stack)) {
  sequences_ = static_cast<std::int64_t>(work_.step_tokens() / static_cast<double>(work_.seq) + .5);
  own_[Knob::tp] = work_.tp;
  own_[Knob::cp] = work_.cp;
  own_[Knob::ep] = work_.ep;
  own_[Knob::etp] = plan.layout.experts_cut_by_tp() ? 1 : 0;
  own_[Knob::microbatch] = static_cast<int>(work_.microbatch);
  own_[Knob::async_tp] = job.job.parallelism.enable_async_tensor_parallel ? 1 : 0;
  own_[Knob::once] = plan.expert_rows.once ? 1 : 0;
  own_[Knob::pp] = work_.pipeline.ranks();
  own_[Knob::replicate] = work_.replicate;
  find_degrees(machine);
  find_policies(machine);
  find_schedules();
  find_splits();
}

/// Tensor parallelism stays in an NVLink domain, but for the job's own.
void VariantSpace::find_degrees(const Machine& machine) {
  const int gpus = work_.gpus;
  std::vector<int> tp, cp, ep{1}, microbatches;
  for (const int degree : divisors(gpus, machine.nvlink_domain))
    if (tensor_parallelism_fits(*plan_.model.spec, degree)) tp.push_back(degree);
  for (const int degree : divisors(gpus, gpus))
    if (work_.seq % (2 * degree) == 0 || degree == 1) cp.push_back(degree);
  if (work_.model.mixture) ep = divisors(static_cast<int>(work_.model.mixture->experts), gpus);
  for (const int rows : {1, 2, 4, 8})
    if (rows <= sequences_) microbatches.push_back(rows);
  const int deepest = static_cast<int>(work_.model.layers) + 2;
  values_[Knob::tp] = own_first(own_[Knob::tp], tp);
  values_[Knob::cp] = own_first(own_[Knob::cp], cp);
  values_[Knob::ep] = own_first(own_[Knob::ep], ep);
  const std::vector<int> either = work_.model.mixture ? std::vector{0, 1} : std::vector{0};
  values_[Knob::etp] = own_first(own_[Knob::etp], either);
  values_[Knob::once] = own_first(own_[Knob::once], either);
  values_[Knob::microbatch] = own_first(own_[Knob::microbatch], microbatches);
  values_[Knob::pp] = own_first(own_[Knob::pp], divisors(gpus, deepest));
  values_[Knob::replicate] = own_first(own_[Knob::replicate], divisors(gpus, gpus));
}

void VariantSpace::find_policies(const Machine& machine) {
  const config::JobConfig& job = job_.job;
  recomputations_ = {{job.activation_checkpoint.mode, job.activation_checkpoint.selective_ac_option,
                      work_.recompute, work_.recomputed_blocks}};
  const auto nth = [&](std::int64_t n) {
    return Recomputation{"selective", std::to_string(n), Recompute::full,
                         plan::RecomputePolicy{plan::RecomputePolicy::Kind::every, n}.share_of(
                             plan_.model.shape.layers)};
  };
  for (const Recomputation& other :
       {Recomputation{"none", "", Recompute::none, 1},
        Recomputation{"selective", "op", Recompute::every_second_mm, 1}, nth(4), nth(3), nth(2),
        Recomputation{"full", "", Recompute::full, 1}})
    if (other.kind != work_.recompute || other.blocks != work_.recomputed_blocks)
      recomputations_.push_back(other);
  for (std::size_t i = 0; i < recomputations_.size(); ++i)
    values_[Knob::recompute].push_back(static_cast<int>(i));
  values_[Knob::async_tp] = {own_[Knob::async_tp]};
  if (can_overlap_chunks()) values_[Knob::async_tp].push_back(1 - own_[Knob::async_tp]);
  values_[Knob::reshard] = values_[Knob::accumulate] = {0};
  if (!stack_.distributed_optimizer) {
    values_[Knob::reshard] = {0, 1, 2};
    if (!job.debug.deterministic) values_[Knob::accumulate] = {0, 1, 2};
  }
  values_[Knob::precision] = {0};
  const Format other = work_.precision == Precision::f32 ? Format::bf16 : Format::f32;
  if (job_.origin("training.mixed_precision_param") == "default" && !plan_.linears.rounds() &&
      job.training.dtype != "float64" && machine.ceiling_of(other) > 0)
    values_[Knob::precision].push_back(1);
}

/// The scales of rounded products need all tokens at once.
bool VariantSpace::can_overlap_chunks() const {
  return plan_.tensor.sequence_parallel && !plan_.linears.rounds();
}

bool VariantSpace::frees_weights(const Variant& variant) const {
  const int value = variant[Knob::reshard];
  return value == 0 ? plan_.sharding.reshard.frees(variant[Knob::pp] > 1) : value == 1;
}

bool VariantSpace::adds_whole_gradients(const Variant& variant) const {
  const int value = variant[Knob::accumulate];
  return value == 0 ? !plan_.sharding.reduces_each_microbatch(variant[Knob::pp] > 1) : value == 2;
}

bool VariantSpace::has(const Variant& v) const {
  return std::ranges::all_of(kEachKnob, [&](Knob knob) {
    return std::ranges::find(values_[knob], v[knob]) != values_[knob].end();
  });
}

bool VariantSpace::divides(const Variant& v) const {
  const int tp = v[Knob::tp], cp = v[Knob::cp], pp = v[Knob::pp];
  const std::int64_t sharers = std::int64_t{tp} * cp * pp;
  if (work_.gpus % (sharers * v[Knob::replicate]) != 0) return false;
  const std::int64_t data = work_.gpus / sharers, shard = data / v[Knob::replicate];
  if (sequences_ % (data * v[Knob::microbatch]) != 0) return false;
  const bool balanced = job_.job.parallelism.context_parallel_load_balancer.has_value();
  const std::int64_t parts = (plan_.tensor.sequence_parallel ? tp : 1) *
                             (cp > 1 ? (balanced ? 2 : 1) * std::int64_t{cp} : 1);
  if (work_.seq % parts != 0) return false;
  if (v[Knob::etp] == 1 && tp == 1) return false;
  if (shard * cp * (v[Knob::etp] == 1 ? 1 : tp) % v[Knob::ep] != 0) return false;
  return has_effect(v);
}

/// What has no effect stays as it is.
bool VariantSpace::has_effect(const Variant& v) const {
  if (v[Knob::tp] == 1 && v[Knob::async_tp] != own_[Knob::async_tp]) return false;
  if (v[Knob::ep] == 1 && v[Knob::once] != own_[Knob::once]) return false;
  Variant usual = v;
  usual[Knob::reshard] = usual[Knob::accumulate] = 0;
  if (v[Knob::reshard] != 0 && frees_weights(v) == frees_weights(usual)) return false;
  return v[Knob::accumulate] == 0 || adds_whole_gradients(v) != adds_whole_gradients(usual);
}

bool VariantSpace::legal(const Variant& v) const {
  if (!divides(v)) return false;
  const int pp = v[Knob::pp], which = v[Knob::schedule];
  if (pp == 1) return which == 0 && v[Knob::split] == 0;
  if (keeps_batch(v)) return true;
  const Pipeline* pipeline = pipeline_of(v);
  const schedule::Traits* schedule = cuts_[static_cast<std::size_t>(which)].schedule;
  if (!pipeline || !schedule) return false;
  const std::int64_t count = microbatches(v);
  if (count < schedule->least_microbatches(pp) || !schedule->fills_rounds(count, pp)) return false;
  // Not the job's own schedule under another number.
  if (which == 0 || schedule != cuts_[0].schedule) return true;
  Variant usual = v;
  usual[Knob::schedule] = 0;
  const Pipeline* own = pipeline_of(usual);
  return !own || own->map.stages() != pipeline->map.stages();
}

/// The pipeline, and what passes it, as the job has them.
bool VariantSpace::keeps_batch(const Variant& v) const {
  return v[Knob::pp] == own_[Knob::pp] && v[Knob::schedule] == 0 && v[Knob::split] == 0 &&
         v[Knob::microbatch] == own_[Knob::microbatch] &&
         v[Knob::tp] * v[Knob::cp] == own_[Knob::tp] * own_[Knob::cp];
}

std::int64_t VariantSpace::microbatches(const Variant& v) const {
  const std::int64_t data = work_.gpus / (std::int64_t{v[Knob::tp]} * v[Knob::cp] * v[Knob::pp]);
  return sequences_ / (data * v[Knob::microbatch]);
}

std::int64_t VariantSpace::loss_chunk_tokens(const Workload& work) const {
  const model::Dimensions& model = plan_.model.spec->dimensions;
  const bool other = work.precision != work_.precision;
  const auto bytes = static_cast<std::int64_t>(other ? element_bytes(work.precision)
                                                     : size_of(plan_.precision.compute));
  return plan::loss_chunk_tokens(plan_.fused_loss, {work.microbatch * work.seq / work.cp,
                                                    model.vocab / work.tp, model.dim, bytes});
}

Workload VariantSpace::without_lists(const Variant& v) const {
  if (v == own_) return work_;
  Workload out = work_;
  out.microbatch = v[Knob::microbatch];
  out.tp = v[Knob::tp];
  out.cp = v[Knob::cp];
  out.ep = v[Knob::ep];
  out.etp = v[Knob::etp] == 1 ? out.tp : 1;
  out.replicate = v[Knob::replicate];
  out.fsdp = out.gpus / (out.tp * v[Knob::pp] * out.replicate);
  out.reshard = frees_weights(v);
  out.unsharded_gradients = adds_whole_gradients(v);
  const Recomputation& again = recomputations_[static_cast<std::size_t>(v[Knob::recompute])];
  out.recompute = again.kind;
  out.recomputed_blocks = again.blocks;
  out.async_tp = v[Knob::async_tp] == 1 && can_overlap_chunks();
  out.dispatcher = v[Knob::once] == 1 ? Dispatcher::once_a_rank : Dispatcher::alltoall;
  if (v[Knob::precision] == 1)
    out.precision = work_.precision == Precision::f32 ? Precision::bf16 : Precision::f32;
  if (stack_.fused_loss) out.loss_chunk_tokens = loss_chunk_tokens(out);
  out.graphs = graphs_of(out);
  set_pipeline(v, out.pipeline);
  return out;
}

}  // namespace tessera::planner
