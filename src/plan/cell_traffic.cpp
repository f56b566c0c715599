// SPDX-License-Identifier: Apache-2.0
#include "cell_traffic.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::plan {
namespace {

using comm::Call;
using mesh::Axis;
using model::Boundary;

/// Features of a slot in front of a cell.
Shape features_of(const model::CellSpec& cell, model::Slot slot) {
  const auto live = std::ranges::find(cell.live, slot, &model::Live::slot);
  TESSERA_EXPECT(live != cell.live.end(), "nothing is in slot {} before {}", model::name_of(slot),
                 cell.name);
  return live->features;
}

}  // namespace

CellTraffic::CellTraffic(const JobPlan& plan, mesh::Rank rank)
    : plan_(plan),
      model_(*plan.model.spec),
      rank_(rank),
      groups_(plan.layout),
      tp_(groups_.along({Axis::tp})),
      cp_(groups_.along({Axis::cp})),
      ep_(groups_.experts()),
      tokens_(plan.batch().microbatch_rows * plan.batch().cut.positions()),
      element_bytes_(static_cast<std::int64_t>(size_of(plan.precision.compute))),
      sum_bytes_(plan.precision.compute == DType::f64 ? 8 : 4) {}

std::int64_t CellTraffic::whole(std::int64_t features) const {
  return tokens_ * features * element_bytes_;
}

/// In which tokens travel around matmuls; 0: at once, and not around them.
std::int64_t CellTraffic::chunks() const {
  if (plan_.tensor.token_chunks == 0) return 0;
  return filled_chunks(tokens_ / tp_.size, plan_.tensor.token_chunks);
}

UnitTraffic CellTraffic::of_unit(const UnitPart& part) const {
  UnitTraffic unit;
  for (int i = part.spec.begin; i < part.spec.end; ++i) {
    const model::CellSpec& cell = model_.cells[static_cast<std::size_t>(i)];
    before(cell, unit);
    inside(cell, unit);
    after(cell, unit);
  }
  if (part.spec.end == static_cast<int>(model_.cells.size())) add_loss(unit);
  return unit;
}

void CellTraffic::before(const model::CellSpec& cell, UnitTraffic& unit) const {
  if (cell.input == Boundary::to_experts) to_experts(unit);
  if (cell.input != Boundary::gather) return;
  const std::int64_t features = features_of(cell, cell.source.value_or(model::Slot::h)).front();
  if (chunks() > 0 && !cell.splits_input) {
    unit.forward.add(tp_, Call::all_gather, piece(features), chunks());
    unit.backward.add(tp_, Call::all_gather, piece(features));
    unit.backward.add(tp_, Call::reduce_scatter, whole(features), chunks());
  } else if (plan_.tensor.sequence_parallel) {
    gather_tokens(features, unit);
    unit.again.add(tp_, Call::all_gather, piece(features));
  } else {
    unit.backward.add(tp_, Call::all_reduce, whole(features));
  }
}

void CellTraffic::inside(const model::CellSpec& cell, UnitTraffic& unit) const {
  if (cell.kind == model::CellKind::attention) attend(cell, unit);
  if (cell.kind == model::CellKind::dispatch) dispatch(unit);
  if (cell.kind == model::CellKind::combine) combine(unit);
}

void CellTraffic::after(const model::CellSpec& cell, UnitTraffic& unit) const {
  if (cell.output == Boundary::from_experts) from_experts(unit);
  if (cell.output != Boundary::reduce) return;
  const bool lookup = cell.kind == model::CellKind::embedding;
  const std::int64_t calls = lookup ? 1 : std::max<std::int64_t>(1, chunks()),
                     dim = model_.dimensions.dim;
  if (!plan_.tensor.sequence_parallel) return sum_tokens(unit);
  unit.forward.add(tp_, Call::reduce_scatter, whole(dim), calls);
  const bool frozen =
      lookup && is_frozen(model_.params[static_cast<std::size_t>(cell.params.front())],
                          plan_.sharding.freeze);
  if (!frozen) unit.backward.add(tp_, Call::all_gather, piece(dim), calls);
}

void CellTraffic::gather_tokens(std::int64_t features, UnitTraffic& unit) const {
  unit.forward.add(tp_, Call::all_gather, piece(features));
  unit.backward.add(tp_, Call::reduce_scatter, whole(features));
}

void CellTraffic::sum_tokens(UnitTraffic& unit) const {
  unit.forward.add(tp_, Call::all_reduce, whole(model_.dimensions.dim));
}

void CellTraffic::to_experts(UnitTraffic& unit) const {
  const std::int64_t dim = model_.dimensions.dim;
  const bool cut = plan_.layout.experts_cut_by_tp(), sequence = plan_.tensor.sequence_parallel;
  if (cut && sequence) gather_tokens(dim, unit);
  if (cut && !sequence) unit.backward.add(tp_, Call::all_reduce, whole(dim));
  if (!cut && !sequence) unit.backward.add(tp_, Call::all_gather, piece(dim));
}

void CellTraffic::from_experts(UnitTraffic& unit) const {
  const std::int64_t dim = model_.dimensions.dim;
  const bool cut = plan_.layout.experts_cut_by_tp(), sequence = plan_.tensor.sequence_parallel;
  if (cut && sequence) {
    unit.forward.add(tp_, Call::reduce_scatter, whole(dim));
    unit.backward.add(tp_, Call::all_gather, piece(dim));
  }
  if (cut && !sequence) sum_tokens(unit);
  if (!cut && !sequence) unit.forward.add(tp_, Call::all_gather, piece(dim));
}

/// Keys and values travel in one piece; their gradients in the type that they are summed in.
void CellTraffic::attend(const model::CellSpec& cell, UnitTraffic& unit) const {
  std::int64_t elements = 0;
  for (const model::Slot slot : {model::Slot::k, model::Slot::v}) {
    const Shape features = features_of(cell, slot);
    elements += tokens_ * std::max<std::int64_t>(1, features[0] / tp_.size) * features[1];
  }
  const std::int64_t block = elements * element_bytes_, gradient = elements * sum_bytes_,
                     ranks = cp_.size;
  if (plan_.rotation == Rotation::ring) {
    unit.forward.add(cp_, Call::group, (ranks - 1) * block, ranks - 1);
    // A gradient follows its block one step later, and then goes home.
    unit.backward.add(cp_, Call::group, (ranks - 1) * block + ranks * gradient, ranks + 1);
    return;
  }
  unit.forward.add(cp_, Call::all_gather, block);
  unit.backward.add(cp_, Call::all_gather, block);
  unit.backward.add(cp_, Call::reduce_scatter, ranks * gradient);
}

ExpertChoices CellTraffic::choices() const {
  const model::MixtureSpec& mixture = model_.mixtures.front();
  return {tokens_ / (plan_.layout.experts_cut_by_tp() ? 1 : tp_.size), mixture.top_k,
          mixture.experts, ep_.size};
}

/// Of this rank's tokens, for experts anywhere.
std::int64_t CellTraffic::routed_rows() const {
  const double capacity = plan_.expert_rows.capacity;
  const bool once = plan_.expert_rows.once;
  if (plan_.fixes_rows())
    return ep_.size * (once ? tokens_for_each_rank(capacity, choices())
                            : rows_for_each_rank(capacity, choices()));
  if (!once) return choices().tokens * choices().top_k;
  std::int64_t rows = 0;
  for (std::int64_t rank = 0; rank < ep_.size; ++rank) rows += tokens_of_rank(rank);
  return rows;
}

/// Of one rank that has experts of an expert rank, if choices go round the experts: `experts`
/// tokens come to the first one again.
std::int64_t CellTraffic::tokens_of_rank(std::int64_t rank) const {
  const auto [tokens, top_k, experts, ranks] = choices();
  const std::int64_t here = experts / ranks, whole = tokens / experts, rest = tokens % experts;
  std::int64_t found = 0;
  for (std::int64_t token = 0; token < std::min(tokens, experts); ++token) {
    const std::int64_t first = (token * top_k - rank * here) % experts,
                       after = first < 0 ? first + experts : first;  // the rank's first expert
    if (after < here || after + top_k > experts) found += whole + (token < rest ? 1 : 0);
  }
  return found;
}

/// Of the tokens of all ranks, for this rank's experts, if choices go round the experts.
std::int64_t CellTraffic::arriving_rows() const {
  if (plan_.fixes_rows()) return routed_rows();
  const std::vector<mesh::Rank> ranks = plan_.layout.expert_group_of(rank_);
  const std::int64_t mine = std::ranges::find(ranks, rank_) - ranks.begin();
  if (plan_.expert_rows.once) return ep_.size * tokens_of_rank(mine);
  const std::int64_t experts = model_.mixtures.front().experts, here = experts / ep_.size,
                     first = mine * here, rest = routed_rows() % experts;
  return ep_.size *
         (routed_rows() / experts * here + std::clamp(rest - first, std::int64_t{0}, here));
}

void CellTraffic::dispatch(UnitTraffic& unit) const {
  const std::int64_t row = model_.dimensions.dim * element_bytes_;
  const bool once = plan_.expert_rows.once;
  const std::int64_t counts = model_.mixtures.front().experts + (once ? ep_.size : 0);
  if (!once || !plan_.fixes_rows())
    unit.forward.add(ep_, Call::all_to_all,
                     counts * static_cast<std::int64_t>(size_of(DType::i64)));
  if (once) {  // scores and numbers of experts
    const std::int64_t scores = choices().top_k * sum_bytes_;
    unit.forward.add(ep_, Call::all_to_all_v, 2 * routed_rows() * scores);
    unit.backward.add(ep_, Call::all_to_all_v, arriving_rows() * scores);
  }
  unit.forward.add(ep_, Call::all_to_all_v, routed_rows() * row);
  unit.backward.add(ep_, Call::all_to_all_v, arriving_rows() * row);
}

void CellTraffic::combine(UnitTraffic& unit) const {
  const std::int64_t row = model_.dimensions.dim * element_bytes_;
  unit.forward.add(ep_, Call::all_to_all_v, arriving_rows() * row);
  unit.backward.add(ep_, Call::all_to_all_v, routed_rows() * row);
}

void CellTraffic::add_loss(UnitTraffic& unit) const {
  if (plan_.tensor.loss_parallel) {
    unit.loss.add(tp_, Call::all_reduce, tokens_ * sum_bytes_);
    unit.loss.add(tp_, Call::all_reduce, 2 * tokens_ * sum_bytes_);
  } else {
    unit.loss.add(tp_, Call::all_gather, whole(model_.dimensions.vocab / tp_.size));
  }
  if (!model_.balance.wanted() || model_.mixtures.empty()) return;
  const RankGroup holders =
      plan_.layout.experts_cut_by_tp() ? cp_ : groups_.along({Axis::cp, Axis::tp});
  unit.loss.add(holders, Call::all_reduce, model_.balance.experts * sum_bytes_);
}

}  // namespace tessera::plan
