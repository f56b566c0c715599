// SPDX-License-Identifier: Apache-2.0
// What a stage keeps of its gathered weights, by policy.
#include <algorithm>

#include "tessera/base/name_pattern.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {

using mesh::Axis;

/// Over the whole model, so that every stage says the same of a pattern.
void Stage::check_patterns() const {
  std::vector<std::string> units;
  for (const model::UnitSpec& unit : model_.units) units.push_back(unit.name);
  for (const plan::ReshardRule& rule : options_.sharding.reshard_rules)
    require_matches(rule.match, units, "parallelism.reshard_rules");
}

comm::Communicator& Stage::neighbours(int ranks) {
  return mesh_.neighbours(mesh_.along({Axis::dp_shard, Axis::cp}), ranks);
}

/// Those that share this rank's experts among the same ranks; null where not all of them do.
comm::Communicator* Stage::expert_neighbours(int ranks) {
  const std::optional<int> experts = plan::expert_neighbours(mesh_.layout(), ranks);
  return experts ? &mesh_.neighbours(mesh_.expert_shards(), *experts) : nullptr;
}

/// Collective over fsdp, whose ranks hold the same units and so ask for the same groups of
/// neighbours.
void Stage::resolve_policies(std::int64_t budget_bytes) {
  std::vector<plan::UnitWeights> weights;
  for (const UnitState& state : units_) {
    const bool last_of_model = state.number + 1 == static_cast<std::int64_t>(model_.units.size());
    weights.push_back({state.unit.name(), 0, last_of_model});
    for (const ShardGroup* group : state.unit.groups())
      weights.back().gathered_bytes += group->gathered_bytes();
  }
  const int fsdp = mesh_.along({Axis::dp_shard, Axis::cp}).size();
  const std::vector<plan::UnitReshard> reshards =
      plan::resolve_reshard(options_.sharding.reshard, options_.sharding.reshard_rules, weights,
                            !(first() && last()), fsdp, budget_bytes);
  for (std::size_t k = 0; k < units_.size(); ++k) {
    units_[k].reshard = reshards[k];
    if (reshards[k].group == 0) continue;
    neighbours(reshards[k].group);
    if (!model_.mixtures.empty()) expert_neighbours(reshards[k].group);
  }
  // A tied group is in two units, of which one may free it.
  for (const bool freed : {false, true})
    for (const UnitState& state : units_)
      if (state.reshard.free == freed)
        for (ShardGroup* group : state.unit.groups()) group->kept_copy().keep(!freed);
}

void Stage::set_reshard_budget(std::int64_t bytes) { resolve_policies(bytes); }

std::int64_t Stage::scratch_bytes(int microbatches) const {
  std::int64_t waiting = 0, largest = 0;
  for (const UnitState& state : units_) {
    std::int64_t accumulator = 0, collectives = 0;
    for (const ShardGroup* group : state.unit.groups()) {
      accumulator += GradientReducer::accumulator_bytes(*group);
      collectives += gather_bytes(*group) + GradientReducer::reduction_bytes(*group);
    }
    waiting += accumulator;
    largest = std::max(largest, accumulator + collectives);
  }
  // This unit's, those that are gathered ahead, and one whose reduction is in progress.
  const std::int64_t ahead =
      std::min<std::int64_t>(options_.sharding.prefetch_units, std::ssize(units_));
  return reducer_.waiting_sums(microbatches) * waiting + (2 + ahead) * largest;
}

void Stage::reshard(UnitState& state) {
  const plan::UnitReshard& policy = state.reshard;
  if (!policy.free) return;
  if (policy.group > 0)
    state.unit.reshard_within(neighbours(policy.group), expert_neighbours(policy.group));
  else
    state.unit.reshard();
}

std::int64_t Stage::kept_bytes() {
  std::int64_t bytes = 0;
  for (const UnitState& state : units_)
    for (const ShardGroup* group : state.unit.groups()) {
      const int ranks = state.reshard.group;
      if (!state.reshard.free)
        bytes += group->gathered_bytes();
      else if (comm::Communicator* among = ranks == 0            ? nullptr
                                           : has_experts(*group) ? expert_neighbours(ranks)
                                                                 : &neighbours(ranks))
        bytes += group->gathered_bytes() / among->size();
    }
  return bytes;
}

}  // namespace tessera::parallel
