// SPDX-License-Identifier: Apache-2.0
#include "fit_rules.hpp"

#include <algorithm>

#include "name_rules.hpp"
#include "sections.hpp"
#include "tessera/config/flavor.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/plan/injected_fault.hpp"
#include "tessera/plan/model_fit.hpp"
#include "tessera/plan/model_shape.hpp"
#include "tessera/plan/stage_ranges.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::plan {

using mesh::Axis;
using namespace config::key_names;

namespace {

mesh::Degrees degrees_of(const config::Parallelism& p) {
  return {p.pipeline_parallel_degree,     p.data_parallel_replicate_degree,
          p.data_parallel_shard_degree,   p.context_parallel_degree,
          p.tensor_parallel_degree,       p.expert_parallel_degree,
          p.expert_tensor_parallel_degree};
}

}  // namespace

FitRules::FitRules(config::Reading& reading, int ranks, std::int64_t vocabulary,
                   ModelSource spec_of)
    : Rules(reading),
      ranks_(ranks > 0 ? ranks : fewest_ranks(job_.parallelism)),
      vocabulary_(vocabulary),
      spec_of_(std::move(spec_of)) {}

void FitRules::all() {
  mesh();
  faults();
  batch();
  sequence();
  if (pipelined()) microbatch_sizes();
  model();
  if (model_.spec) check_names(reading_, *model_.spec);
  if (layout_) sharding();
  if (layout_ && model_.spec) fits();
}

/// The innermost degree that was asked for is named first.
void FitRules::mesh() {
  const config::Parallelism& p = job_.parallelism;
  const auto resolve = [&] {
    try {
      layout_ = mesh::Layout::resolve(degrees_of(p), ranks_);
    } catch (const Error& error) {
      const int least = fewest_ranks(p);
      if (least <= ranks_) throw;
      fail(error.code(), "{}, or start {} ranks: `tessera launch -n {} -- ...`", error.what(),
           least, least);
    }
  };
  if (p.tensor_parallel_degree != 1)
    obey({kTp, kCp, kShard, kReplicate, kPp, kEp, kEtp}, resolve);
  else if (p.context_parallel_degree != 1)
    obey({kCp, kShard, kReplicate, kPp, kTp, kEp, kEtp}, resolve);
  else
    obey({kShard, kReplicate, kPp, kEp, kEtp, kTp, kCp}, resolve);
}

void FitRules::faults() {
  obey({"debug.inject_faults", "training.steps", kPp, kReplicate, kShard, kCp, kTp, kEp, kEtp},
       [&] { injected_faults(job_.debug.inject_faults, ranks_, job_.training.steps); });
}

/// Of the mesh; as the job says it where there is none, and 1 where that leaves it open.
int FitRules::degree(Axis axis, int declared) const {
  return layout_ ? layout_->degree(axis) : std::max(declared, 1);
}

bool FitRules::pipelined() const {
  return layout_ ? layout_->degree(Axis::pp) > 1 : job_.parallelism.pipeline_parallel_degree != 1;
}

void FitRules::batch() {
  const config::Training& t = job_.training;
  const config::Parallelism& p = job_.parallelism;
  const bool open = p.data_parallel_shard_degree == -1 || p.data_parallel_replicate_degree == -1;
  const std::int64_t ranks =
      layout_ ? layout_->dp_degree()
      : open  ? 1
              : std::int64_t{p.data_parallel_shard_degree} * p.data_parallel_replicate_degree;
  obey({kBatch, kLocal, kSeq, kShard, kReplicate}, [&] {
    BatchPlan::require_countable(t.global_batch_size, t.local_batch_size, ranks, t.seq_len);
  });
  if (t.global_batch_size == -1 || reading_.blames(kBatch)) return;
  // A quotient, because the product of two large numbers may not fit.
  if (t.global_batch_size % ranks != 0 || t.global_batch_size / ranks % t.local_batch_size != 0)
    wrong({kBatch, kLocal, kShard, kReplicate},
          "global_batch_size {} is not a multiple of local_batch_size {} ({}) x {} data-parallel "
          "rank{}",
          t.global_batch_size, t.local_batch_size, at(kLocal), ranks, ranks == 1 ? "" : "s");
}

void FitRules::sequence() {
  const config::Parallelism& p = job_.parallelism;
  const std::int64_t tp =
      p.disable_sequence_parallel ? 1 : degree(Axis::tp, p.tensor_parallel_degree);
  const std::int64_t cp = degree(Axis::cp, p.context_parallel_degree);
  const int chunks = p.context_parallel_load_balancer ? 2 : 1;  // of each context-parallel rank
  const std::int64_t parts = tp * (cp > 1 ? chunks * cp : 1), seq = job_.training.seq_len;
  if (seq % parts != 0)
    wrong(
        {kSeq, kTp, kCp, kBalancer, kNoSequenceParallel},
        "seq_len {} is not a multiple of {} (tensor_parallel_degree {}{}), the number of parts "
        "of each sequence; choose {}",
        seq, parts, tp,
        cp > 1 ? fmt::format(" x {}context_parallel_degree {}", chunks == 2 ? "2 x " : "", cp) : "",
        (seq / parts + 1) * parts);
}

bool FitRules::divides_local_batch(std::string_view key, std::int64_t rows) {
  if (job_.training.local_batch_size % rows == 0) return true;
  wrong({key, kLocal, kPp}, "local_batch_size {} ({}) is not a multiple of {} {}",
        job_.training.local_batch_size, at(kLocal), key.substr(key.find('.') + 1), rows);
  return false;
}

void FitRules::microbatch_sizes() {
  const config::Parallelism& p = job_.parallelism;
  if (p.pipeline_parallel_microbatch_size > 0)
    divides_local_batch(kMicro, p.pipeline_parallel_microbatch_size);
  for (const std::string& entry : p.pipeline_parallel_microbatch_steps)
    if (const auto step = config::microbatch_step(entry); step && step->size > 0)
      if (!divides_local_batch(kMicroSteps, step->size)) return;
}

void FitRules::model() {
  const config::Model& m = job_.model;
  if (!m.hf_config && reading_.blames("model.name")) return;
  const auto make = [&] {
    model_ = {m.name, config::shape_flavor(m.flavor), m.hf_config.has_value(),
              decoder_shape_of(job_, vocabulary_), nullptr};
    model_.spec = spec_of_(model_.shape);
  };
  if (m.hf_config)
    obey({"model.hf_config"}, make);
  else
    obey({"model.moe_load_balance_coeff", "model.moe_aux_loss_coeff", "model.moe_z_loss_coeff",
          "model.flavor", "model.name", "model.hf_config"},
         make);
  if (model_.spec)
    obey({"training.dataset_path", "training.mixture", "model.hf_assets_path"},
         [&] { check_vocabulary(vocabulary_, model_.spec->name, model_.shape.vocab); });
}

/// Groups of ranks that keep parts of the weights divide those that share them.
void FitRules::sharding() {
  std::vector<UnitWeights> units;
  if (model_.spec)
    for (const model::UnitSpec& unit : model_.spec->units) units.push_back({unit.name, 0, false});
  else
    units.push_back({"layers.0", 0, false});
  const int ranks = layout_->degree(Axis::dp_shard) * layout_->degree(Axis::cp);
  const auto resolve = [&](std::string_view policy, const std::vector<ReshardRule>& rules) {
    resolve_reshard(ReshardPolicy::parse(policy).value(), rules, units, pipelined(), ranks, 0);
  };
  obey({kPolicy, kShard}, [&] { resolve(job_.parallelism.fsdp_reshard_after_forward, {}); });
  if (reading_.blames("parallelism.reshard_rules")) return;
  std::vector<ReshardRule> rules;
  for (const config::Strings& rule : job_.parallelism.reshard_rules)
    rules.push_back({rule[0], ReshardPolicy::parse(rule[1]).value()});
  obey({"parallelism.reshard_rules", kShard}, [&] { resolve("default", rules); });
}

void FitRules::fits() {
  if (obey({kTp}, [&] { check_tensor_parallel_fits(*model_.spec, layout_->degree(Axis::tp)); }))
    obey({"quantize.linear.mx.filter_fqns", kTp},
         [&] { check_blocks_fit(*model_.spec, *layout_, linear_precision(job_)); });
  if (obey({kEp, kEtp}, [&] { check_experts_fit(*model_.spec, *layout_); }))
    obey({"quantize.grouped_mm.float8.fqns", "quantize.grouped_mm.mx.fqns", kEtp},
         [&] { check_rounded_experts(*model_.spec, *layout_, linear_precision(job_).experts); });
  for (const std::string_view key : {kBatch, kSeq, kMicro, kMicroSteps})
    if (reading_.blames(key)) return;
  validation();
  if (knows_pipeline() && !reading_.blames(kSchedule)) pipeline();
}

void FitRules::validation() {
  if (!job_.validation.enable) return;
  const Keys keys{"validation.local_batch_size",
                  "validation.enable",
                  kLocal,
                  kMicro,
                  kTp,
                  kBalancer,
                  kNoSequenceParallel,
                  kSeq};
  obey(keys, [&] {
    const config::Validation& v = job_.validation;
    BatchPlan::require_countable(-1, v.local_batch_size, layout_->dp_degree(), v.seq_len);
    const BatchPlan batch = BatchPlan::of_validation(job_, *layout_);
    check_routed_tokens(*model_.spec, *layout_, batch, !job_.parallelism.disable_sequence_parallel);
    validation_ = batch;
  });
}

/// Were all keys understood that shape the pipeline? Most are not to blame where it does not fit.
bool FitRules::knows_pipeline() const {
  return reading_.understood({kLocal, kBatch, kSeq, kMicro, kMicroSteps, kPp, kSchedule, kCsv, kMap,
                              kCuts, kParts, kLayers, kBalancer, kNoSequenceParallel,
                              "parallelism.pipeline_parallel_split",
                              "parallelism.pipeline_parallel_first_stage_less_layers",
                              "parallelism.pipeline_parallel_last_stage_less_layers"});
}

/// Microbatches that fill the schedule's pipeline, and blocks of MX; true if they do.
bool FitRules::fill_pipeline(Keys keys, std::int64_t rows) {
  const auto batch = [&] { return BatchPlan::make(job_, *layout_, rows); };
  return obey(keys, [&] { check_microbatches(job_, layout_->degree(Axis::pp), batch()); }) &&
         obey({kSeq, kLocal, kMicro, kTp}, [&] { check_blocks(batch()); });
}

void FitRules::check_blocks(const BatchPlan& batch) const {
  check_block_tokens(*model_.spec, *layout_, linear_precision(job_), batch,
                     !job_.parallelism.disable_sequence_parallel);
}

MicrobatchPlan FitRules::with_microbatches(const schedule::StageMap& map, std::int64_t rows) const {
  const BatchPlan batch = BatchPlan::make(job_, *layout_, rows);
  check_microbatches(job_, map.ranks(), batch);
  check_routed_tokens(*model_.spec, *layout_, batch, !job_.parallelism.disable_sequence_parallel);
  check_blocks(batch);
  return {batch, pipeline_plan_of(job_, *model_.spec, map, batch)};
}

void FitRules::pipeline() {
  const config::Parallelism& p = job_.parallelism;
  const std::int64_t rows = p.pipeline_parallel_microbatch_size;
  const bool tuned = pipelined() && rows == 0;
  const bool filled = tuned || fill_pipeline({kLocal, kMicro, kPp, kSchedule, kBatch, kCsv}, rows);
  for (const std::string_view key : {kCsv, kCuts, kParts})
    if (reading_.blames(key)) return;
  std::optional<schedule::StageMap> map;
  if (!obey({kSchedule, kLayers, kMap, kCsv, kCuts, kParts, kPp},
            [&] { map = stage_map_of(p, *model_.spec, layout_->degree(Axis::pp)); }))
    return;
  if (!obey({kCuts, kParts, kLayers, kPp, kSchedule},
            [&] { stage_ranges_of(job_, *model_.spec, map->stages()); }))
    return;
  if (!filled) return;
  if (tuned) return trials(*map);
  obey({kSchedule, kCsv, kLocal, kMicro, kPp, kTp},
       [&] { first_ = with_microbatches(*map, rows); });
  if (!pipelined()) return;
  for (const std::string& entry : p.pipeline_parallel_microbatch_steps)
    obey({kMicroSteps}, [&] {
      const auto step = config::microbatch_step(entry).value();
      later_.emplace_back(step.step, with_microbatches(*map, step.size));
    });
}

/// Each size that works may turn out to be the fastest.
void FitRules::trials(const schedule::StageMap& map) {
  const std::int64_t local = job_.training.local_batch_size;
  for (std::int64_t rows = 1; rows <= local; ++rows) {
    if (local % rows != 0) continue;
    try {
      trials_.push_back(with_microbatches(map, rows));
    } catch (const Error&) {  // not this size
    }
  }
  if (trials_.empty())
    return wrong({kMicro, kLocal, kSchedule, kPp},
                 "pipeline_parallel_microbatch_size = \"auto\": no divisor of local_batch_size {} "
                 "works with {} on this mesh; change the batch size or the schedule",
                 local, job_.parallelism.pipeline_parallel_schedule);
  first_ = trials_.front();
}

void FitRules::put_into(JobPlan& plan) const {
  plan.layout = layout_.value();
  plan.model = model_;
  plan.microbatches = first_.value();
  plan.later_microbatches = later_;
  plan.microbatch_trials = trials_;
  if (validation_) plan.data.validation->batch = *validation_;
}

}  // namespace tessera::plan
