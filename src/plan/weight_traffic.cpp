// SPDX-License-Identifier: Apache-2.0
#include "weight_traffic.hpp"

#include <algorithm>
#include <utility>

namespace tessera::plan {
namespace {

using comm::Call;
using mesh::Axis;

}  // namespace

WeightTraffic::WeightTraffic(const JobPlan& plan, mesh::Rank rank, Range cells,
                             const TiedStages& tied, TrafficRows& into)
    : plan_(plan), rank_(rank), groups_of_rank_(plan.layout), tied_(tied), into_(into) {
  const model::ModelSpec& model = *plan_.model.spec;
  const bool whole_model = cells == Range{0, static_cast<std::int64_t>(model.cells.size())};
  const std::vector<UnitPart> parts = unit_parts(model, cells);
  for (const UnitPart& part : parts) {
    Unit& unit = units_.emplace_back();
    for (const WeightGroup& weights : weight_groups(model, part.spec, plan_.sharding.freeze)) {
      PlacementOptions how{plan_.tensor.sequence_parallel};
      if (weights.tied && !whole_model) how.stage_copies = tied_.holders;
      unit.groups.push_back(group_of(weights, how));
    }
  }
  resolve_policies(parts, whole_model);
}

std::size_t WeightTraffic::group_of(const WeightGroup& weights, const PlacementOptions& how) {
  const auto known = std::ranges::find_if(
      groups_, [&](const Group& group) { return group.weights.params == weights.params; });
  if (known != groups_.end()) return static_cast<std::size_t>(known - groups_.begin());
  Group group{weights,
              weights.experts ? groups_of_rank_.expert_shards()
                              : groups_of_rank_.along({Axis::dp_shard, Axis::cp}),
              0,
              0,
              {},
              false,
              {}};
  for (const int param : weights.params) {
    const model::ParamSpec& spec = plan_.model.spec->params[static_cast<std::size_t>(param)];
    group.places.push_back(place(spec, plan_.layout, rank_, how));
    const std::int64_t elements = flat_elements(group.places.back());
    group.elements += elements;
    group.gather_bytes +=
        elements * plan_.linears.gathered_element_bytes(spec, plan_.precision.compute);
    scales_ += plan_.linears.gathers_bytes_of(spec);
  }
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

void WeightTraffic::resolve_policies(const std::vector<UnitPart>& parts, bool whole_model) {
  std::vector<UnitWeights> weights;
  for (const UnitPart& part : parts)
    weights.push_back({part.spec.name, 0, part.number + 1 == std::ssize(plan_.model.spec->units)});
  const int fsdp = groups_of_rank_.along({Axis::dp_shard, Axis::cp}).size;
  const std::vector<UnitReshard> reshards = resolve_reshard(
      plan_.sharding.reshard, plan_.sharding.reshard_rules, weights, !whole_model, fsdp, 0);
  for (std::size_t k = 0; k < units_.size(); ++k) units_[k].reshard = reshards[k];
}

/// Each unit while those before compute.
void WeightTraffic::forward() {
  const auto ahead = static_cast<std::size_t>(plan_.sharding.prefetch_units);
  for (std::size_t k = 0; k < units_.size(); ++k) {
    for (std::size_t j = k; j < units_.size() && j <= k + ahead; ++j) gather(units_[j]);
    reshard(units_[k]);
  }
}

void WeightTraffic::backward() {
  const auto ahead = static_cast<std::size_t>(plan_.sharding.prefetch_units);
  for (std::size_t k = units_.size(); k-- > 0;) {
    for (std::size_t j = 0; j <= k && j <= ahead; ++j) gather(units_[k - j]);
    reshard(units_[k]);
  }
}

void WeightTraffic::gather(const Unit& unit) {
  for (const std::size_t number : unit.groups) {
    Group& group = groups_[number];
    if (std::exchange(group.gathered, true) || group.shards.size == 1) continue;
    const RankGroup& from = group.kept ? *group.kept : group.shards;
    const int parts = group.kept ? group.shards.size / from.size : 1;
    into_.add(from, Call::all_gather, parts * group.gather_bytes);
  }
}

void WeightTraffic::agree_on_scales() {
  const std::int64_t size = plan_.precision.master == DType::f64 ? 8 : 4;
  if (scales_ > 0)
    into_.add(groups_of_rank_.along({Axis::dp_shard, Axis::cp}), Call::all_reduce, scales_ * size);
}

void WeightTraffic::reshard(const Unit& unit) {
  if (!unit.reshard.free) return;
  for (const std::size_t number : unit.groups)
    if (unit.reshard.group > 0)
      reshard_within(groups_[number], unit.reshard.group);
    else
      groups_[number].gathered = false;
}

void WeightTraffic::reshard_within(Group& group, int ranks) {
  const std::optional<int> near =
      group.weights.experts ? expert_neighbours(plan_.layout, ranks) : ranks;
  if (near == 1) return;  // each keeps all
  group.gathered = false;
  if (near) group.kept = groups_of_rank_.neighbours(group.shards, *near);
}

void WeightTraffic::reduce_gradients(bool pipelined) {
  const auto element = static_cast<std::int64_t>(size_of(plan_.precision.reduce));
  const std::int64_t times =
      plan_.sharding.reduces_each_microbatch(pipelined) ? plan_.batch().microbatches_a_step() : 1;
  for (const Group& group : groups_) {
    if (group.weights.frozen) continue;
    const std::int64_t bytes = group.elements * element;
    if (!adds_in_place(group.shards.size, plan_.precision.reduce == plan_.precision.gradient(),
                       plan_.sharding.offload, plan_.sharding.deterministic))
      into_.add(group.shards, Call::reduce_scatter, times * group.shards.size * bytes, times);
    into_.add(groups_of_rank_.along({Axis::dp_replicate}), Call::all_reduce, bytes);
    if (group.places.front().reduces_over(ReduceOver::tied))
      into_.add(tied_.ends, Call::all_reduce, bytes);
  }
}

void WeightTraffic::add_copies(std::map<int, std::int64_t>& bytes) const {
  const auto element = static_cast<std::int64_t>(size_of(plan_.precision.gradient()));
  for (const Group& group : groups_) {
    if (group.weights.frozen) continue;
    for (const Placement& place : group.places)
      if (place.reduces_over(ReduceOver::tp_copies))
        bytes[place.tp_copies] += place.rows.size * place.row_elements() * element;
  }
}

}  // namespace tessera::plan
