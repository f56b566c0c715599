// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/recompute_budget.hpp"

#include "tessera/kernels/torch_internal.hpp"

namespace tessera::parallel {

using model::Slot;

void RecomputeBudget::resolve(std::span<UnitState> units) {
  using Kind = plan::RecomputePolicy::Kind;
  for (UnitState& state : units) {
    if (!state.block) continue;
    if (policy_.kind == Kind::operations) state.recompute = Recompute::operations;
    if (policy_.remakes_block(state.number - 1)) state.recompute = Recompute::unit;
  }
  if (policy_.kind == Kind::budget) activations_.resize(units.size());
}

TapeEntry RecomputeBudget::measured_forward(const UnitState& state, std::size_t number,
                                            const model::Flow& in,
                                            const model::CellContext& context) {
  const std::int64_t before = kernels::allocated_bytes(device_);
  TapeEntry entry = state.unit.forward(in, context, nullptr, Recompute::operations);
  const std::int64_t left = kernels::allocated_bytes(device_) - before;
  std::int64_t input = 0;
  for (const Slot slot : model::kSlotList) {
    if (in[slot].defined()) input += static_cast<std::int64_t>(in[slot].nbytes());
    if (entry.out[slot].defined()) entry.out[slot] = entry.out[slot].detach();
  }
  activations_[number] = {left + entry.remakes.dropped_bytes(), left, input};
  entry.remakes = {};
  entry.recompute = Recompute::unit;
  return entry;
}

void RecomputeBudget::close(std::span<UnitState> units, comm::Communicator& stage) {
  static_assert(sizeof(ActivationBytes) == 3 * sizeof(std::int64_t));
  const auto count = static_cast<std::int64_t>(3 * activations_.size());
  stage.all_reduce({activations_.data(), count, DType::i64}, comm::Op::max).wait();
  const std::vector<Recompute> chosen = recompute_within(activations_, policy_.budget);
  for (std::size_t k = 0; k < units.size(); ++k)
    if (units[k].block) units[k].recompute = chosen[k];
  activations_.clear();
}

}  // namespace tessera::parallel
