// SPDX-License-Identifier: Apache-2.0
// The pipelines of a job's variants: their schedules, stages and action lists.
#include <algorithm>

#include "from_plan.hpp"
#include "pipeline_time.hpp"
#include "tessera/base/error.hpp"
#include "tessera/plan/pipeline_plan.hpp"
#include "tessera/plan/stage_ranges.hpp"
#include "tessera/planner/variant_space.hpp"

namespace tessera::planner {
namespace {

bool alike(const Pipeline& a, const Pipeline& b) {
  return a.map == b.map && std::ranges::equal(a.stages, b.stages);
}

}  // namespace

void VariantSpace::find_schedules() {
  using schedule::StagesPerRank;
  cuts_ = {{schedule::find_traits(job_.job.parallelism.pipeline_parallel_schedule), 0}};
  for (const schedule::Traits& traits : schedule::all_traits()) {
    cuts_.push_back({&traits, traits.usual_stages()});
    if (traits.stages != StagesPerRank::several) continue;
    for (const int chunks : {3, 4, 6, 8}) cuts_.push_back({&traits, chunks});
  }
  for (std::size_t i = 0; i < cuts_.size(); ++i)
    values_[Knob::schedule].push_back(static_cast<int>(i));
}

/// Cuts that the job names stay.
void VariantSpace::find_splits() {
  const config::Parallelism& keys = job_.job.parallelism;
  splits_ = {keys.pipeline_parallel_split};
  const bool named =
      !keys.pipeline_parallel_split_points.empty() || keys.module_fqns_per_model_part;
  for (const char* split : {"layers", "balanced", "balanced_sublayer"})
    if (!named && split != splits_.front()) splits_.emplace_back(split);
  for (std::size_t i = 0; i < splits_.size(); ++i)
    values_[Knob::split].push_back(static_cast<int>(i));
}

const schedule::Traits* VariantSpace::schedule_of(const Variant& v) const {
  return v[Knob::pp] == 1 ? nullptr : cuts_[static_cast<std::size_t>(v[Knob::schedule])].schedule;
}

const Pipeline* VariantSpace::pipeline_of(const Variant& v) const {
  const std::array key{v[Knob::pp], v[Knob::schedule], v[Knob::split]};
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second ? &*found->second : nullptr;
  std::optional<Pipeline>& made = pipelines_[key];
  try {
    made = make_pipeline(v);
  } catch (const Error&) {  // not with these cuts, or on so many ranks
  }
  Variant other = v;
  while (made && --other[Knob::split] >= 0)
    if (const Pipeline* same = pipeline_of(other); same && alike(*same, *made)) made.reset();
  return made ? &*made : nullptr;
}

std::optional<Pipeline> VariantSpace::make_pipeline(const Variant& v) const {
  const int pp = v[Knob::pp];
  const auto& [traits, chunks] = cuts_[static_cast<std::size_t>(v[Knob::schedule])];
  if (pp == work_.pipeline.ranks() && v[Knob::schedule] == 0 && v[Knob::split] == 0)
    return work_.pipeline;
  if (pp > 1 && !traits) return std::nullopt;
  config::JobConfig job = job_.job;
  job.parallelism = pipeline_keys(v);
  const model::ModelSpec& model = *plan_.model.spec;
  Pipeline out;
  out.map = plan::stage_map_of(job.parallelism, model, pp);
  if (chunks > 0 && pp > 1 && out.map.stages() != pp * chunks) return std::nullopt;
  // Whatever the schedule: balancing many stages takes long.
  const auto [cut, is_new] = stages_.try_emplace({out.map.stages(), v[Knob::split]});
  if (is_new)
    if (const auto ranges = plan::stage_ranges_of(job, model, out.map.stages()))
      cut->second = stages_of(model, *ranges, work_.seq);
  if (!cut->second) return std::nullopt;
  out.stages = *cut->second;
  return out;
}

config::Parallelism VariantSpace::pipeline_keys(const Variant& v) const {
  const int pp = v[Knob::pp];
  config::Parallelism keys = job_.job.parallelism;
  keys.pipeline_parallel_degree = pp;
  keys.pipeline_parallel_split = splits_[static_cast<std::size_t>(v[Knob::split])];
  if (v[Knob::schedule] == 0 || pp == 1) return keys;
  const auto& [traits, chunks] = cuts_[static_cast<std::size_t>(v[Knob::schedule])];
  keys.pipeline_parallel_schedule = traits->name;
  keys.pipeline_parallel_schedule_csv.clear();
  if (chunks == traits->usual_stages() && !keys.pipeline_parallel_layers_per_stage) return keys;
  const std::int64_t layers = work_.model.layers + keys.pipeline_parallel_first_stage_less_layers +
                              keys.pipeline_parallel_last_stage_less_layers;
  const std::int64_t stages = std::int64_t{pp} * chunks;
  keys.pipeline_parallel_layers_per_stage = (layers + stages - 1) / stages;
  return keys;
}

Workload VariantSpace::workload(const Variant& v) const {
  Workload out = without_lists(v);
  if (v == own_ || v[Knob::pp] == 1 || out.pipeline.lists) return out;
  Pipeline& pipeline = out.pipeline;
  const schedule::Traits& traits = *cuts_[static_cast<std::size_t>(v[Knob::schedule])].schedule;
  const int microbatches = pipeline.microbatches;
  if (pipeline.map == traits.usual_map(v[Knob::pp], pipeline.chunks())) {
    pipeline.kind = traits.kind;
    pipeline.lists = lists_of(pipeline, microbatches);
  } else {
    pipeline.lists = std::make_shared<const schedule::ActionLists>(
        compute_orders(traits.kind, pipeline.map, microbatches, pipeline.pairs));
  }
  pipeline.kind.reset();
  return out;
}

schedule::Pairs VariantSpace::pairs_of(const Variant& v) const {
  const model::ModelSpec& model = *plan_.model.spec;
  if (model.mixtures.empty() || v[Knob::ep] == 1) return schedule::Pairs::apart;
  config::Parallelism keys = pipeline_keys(v);
  keys.expert_parallel_degree = v[Knob::ep];
  return plan::pairs_of(keys, model);
}

/// All but the lists that workload() makes.
void VariantSpace::set_pipeline(const Variant& v, Pipeline& to) const {
  to.pairs = pairs_of(v);
  if (keeps_batch(v)) {
    if (to.pairs == work_.pipeline.pairs) return;
    if (cuts_[0].schedule)
      to.lists.reset();
    else if (to.pairs == schedule::Pairs::apart)
      to.lists = std::make_shared<const schedule::ActionLists>(with_pairs_apart(*to.lists));
    return;
  }
  const Pipeline* from = pipeline_of(v);
  to.map = from ? from->map : schedule::StageMap::loop(v[Knob::pp]);
  to.stages = from ? from->stages : IndexedVector<schedule::StageIndex, StageContent>();
  to.lists.reset();
  to.microbatches = static_cast<int>(microbatches(v));
  to.rounds = 1;
}

}  // namespace tessera::planner
