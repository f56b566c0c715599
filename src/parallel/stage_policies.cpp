// What a stage keeps and what it makes again: gathered weights and activations, by policy.
#include <algorithm>

#include "tessera/kernels/torch_internal.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {

using mesh::Axis;
using model::Flow;
using model::Slot;

/// Over the whole model, so that every stage says the same of a pattern.
void Stage::check_patterns() const {
  std::vector<std::string> units, params;
  for (const model::UnitSpec& unit : model_.units) units.push_back(unit.name);
  for (const model::ParamSpec& param : model_.params) params.push_back(param.fqn);
  for (const ReshardRule& rule : options_.reshard_rules)
    require_matches(rule.match, units, "parallelism.reshard_rules");
  for (const std::string& pattern : options_.freeze) require_matches(pattern, params, "training.freeze");
}

bool Stage::frozen(const model::ParamSpec& spec) const {
  return std::ranges::any_of(options_.freeze, [&](const std::string& pattern) { return matches(pattern, spec.fqn); });
}

comm::Communicator& Stage::neighbours(int ranks) {
  return mesh_.neighbours(mesh_.along({Axis::dp_shard, Axis::cp}), ranks);
}

/// Those that share this rank's experts among the same ranks, if all of them do or none: the experts' own number of
/// neighbours is a whole one.
comm::Communicator* Stage::expert_neighbours(int ranks) {
  const mesh::Layout& layout = mesh_.layout();
  const int near = ranks * (layout.experts_cut_by_tp() ? 1 : layout.degree(Axis::tp)), ep = layout.expert_degree();
  if (near % ep != 0 && ep % near != 0) return nullptr;
  return &mesh_.neighbours(mesh_.expert_shards(), std::max(1, near / ep));
}

/// Collective over fsdp, whose ranks hold the same units and so ask for the same groups of neighbours.
void Stage::resolve_policies(std::int64_t budget_bytes) {
  std::vector<UnitWeights> weights;
  for (std::size_t k = 0; k < units_.size(); ++k) {
    weights.push_back({units_[k].name(), 0, numbers_[k] + 1 == model_units_});
    for (const ShardGroup* group : units_[k].groups()) weights.back().gathered_bytes += group->gathered_bytes();
  }
  const int fsdp = mesh_.along({Axis::dp_shard, Axis::cp}).size();
  reshards_ =
      resolve_reshard(options_.reshard, options_.reshard_rules, weights, !(first_ && last_), fsdp, budget_bytes);
  for (const UnitReshard& unit : reshards_)
    if (unit.group > 0) {
      neighbours(unit.group);
      if (!model_.mixtures.empty()) expert_neighbours(unit.group);
    }
}

void Stage::set_reshard_budget(std::int64_t bytes) { resolve_policies(bytes); }

std::int64_t Stage::scratch_bytes(int microbatches) const {
  std::int64_t waiting = 0, largest = 0;
  for (const Unit& unit : units_) {
    std::int64_t accumulator = 0, collectives = 0;
    for (const ShardGroup* group : unit.groups()) {
      accumulator += GradientReducer::accumulator_bytes(*group);
      collectives += group->gather_bytes() + GradientReducer::reduction_bytes(*group);
    }
    waiting += accumulator;
    largest = std::max(largest, accumulator + collectives);
  }
  // This unit's, the next one's, and one whose reduction is under way.
  return reducer_.waiting_sums(microbatches) * waiting + 3 * largest;
}

void Stage::reshard(std::size_t unit) {
  const UnitReshard policy = reshards_[unit];
  if (!policy.free) return;
  if (policy.group > 0)
    units_[unit].reshard_within(neighbours(policy.group), expert_neighbours(policy.group));
  else
    units_[unit].reshard();
}

GatherCount Stage::gather_count() const {
  GatherCount sum;
  for (const auto& group : groups_) {
    sum.gathers += group->gather_count().gathers;
    sum.bytes += group->gather_count().bytes;
  }
  return sum;
}

std::int64_t Stage::kept_bytes() {
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < units_.size(); ++k)
    for (const ShardGroup* group : units_[k].groups()) {
      const int ranks = reshards_[k].group;
      if (!reshards_[k].free)
        bytes += group->gathered_bytes();
      else if (comm::Communicator* among = ranks == 0            ? nullptr
                                           : group->of_experts() ? expert_neighbours(ranks)
                                                                 : &neighbours(ranks))
        bytes += group->gathered_bytes() / among->size();
    }
  return bytes;
}

/// The first and the last unit of the model are the embedding and [norm, output].
bool Stage::is_block(std::size_t unit) const { return numbers_[unit] > 0 && numbers_[unit] + 1 < model_units_; }

/// Blocks only; what the budget allows is known once a microbatch went through.
void Stage::resolve_recompute() {
  const RecomputePolicy& policy = options_.recompute;
  recompute_.assign(units_.size(), Recompute::nothing);
  for (std::size_t k = 0; k < units_.size(); ++k) {
    if (!is_block(k)) continue;
    if (policy.kind == RecomputePolicy::Kind::operations) recompute_[k] = Recompute::operations;
    if (policy.kind == RecomputePolicy::Kind::every && (numbers_[k] - 1) % policy.every == 0)
      recompute_[k] = Recompute::unit;
  }
  if (policy.kind == RecomputePolicy::Kind::budget) activations_.resize(units_.size());
}

/// Counts what the pass leaves behind, and then keeps its input only, so that counting needs no more memory than the
/// smallest budget.
TapeEntry Stage::measured_forward(std::size_t unit, const Flow& in, const model::CellContext& context) {
  const std::int64_t before = kernels::allocated_bytes(options_.device);
  TapeEntry entry = units_[unit].forward(in, context, nullptr, Recompute::operations);
  const std::int64_t left = kernels::allocated_bytes(options_.device) - before;
  std::int64_t input = 0;
  for (const Slot slot : model::kSlotList) {
    if (in[slot].defined()) input += static_cast<std::int64_t>(in[slot].nbytes());
    if (entry.out[slot].defined()) entry.out[slot] = entry.out[slot].detach();
  }
  activations_[unit] = {left + entry.remakes.dropped_bytes(), left, input};
  entry.remakes = {};
  entry.recompute = Recompute::unit;
  return entry;
}

/// Ranks that share collectives inside units must choose alike: the most of each figure decides.
void Stage::choose_recompute() {
  static_assert(sizeof(ActivationBytes) == 3 * sizeof(std::int64_t));
  comm::Communicator& stage = mesh_.along({Axis::dp_replicate, Axis::dp_shard, Axis::cp, Axis::tp}).host();
  const auto count = static_cast<std::int64_t>(3 * activations_.size());
  stage.all_reduce({activations_.data(), count, DType::i64}, comm::Op::max).wait();
  const std::vector<Recompute> chosen = recompute_within(activations_, options_.recompute.budget);
  for (std::size_t k = 0; k < units_.size(); ++k)
    if (is_block(k)) recompute_[k] = chosen[k];
  activations_.clear();
}

}  // namespace tessera::parallel
