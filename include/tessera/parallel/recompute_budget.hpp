// SPDX-License-Identifier: Apache-2.0
// Which units of a stage are computed again in backward: by policy, or by a budget of memory once
// one microbatch was measured.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <span>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/parallel/recompute.hpp"
#include "tessera/parallel/unit.hpp"
#include "tessera/plan/sharding_plan.hpp"

namespace tessera::parallel {

class RecomputeBudget {
 public:
  RecomputeBudget(plan::RecomputePolicy policy, at::Device device)
      : policy_(std::move(policy)), device_(device) {}

  const plan::RecomputePolicy& policy() const { return policy_; }
  /// Sets UnitState::recompute of blocks, as far as the policy tells; a budget is open then.
  void resolve(std::span<UnitState> units);
  /// The next microbatch is to be measured: its blocks pass through measured_forward().
  bool open() const { return !activations_.empty(); }
  /// Unit::forward of units[number], whose entry keeps its input only, so that counting needs no
  /// more memory than the smallest budget.
  TapeEntry measured_forward(const UnitState& state, std::size_t number, const model::Flow& in,
                             const model::CellContext& context);
  /// Closes an open budget. Ranks that share collectives inside units must choose alike: the most
  /// of each figure decides. Collective over `stage`, in host memory: all ranks of the stage.
  void close(std::span<UnitState> units, comm::Communicator& stage);

 private:
  plan::RecomputePolicy policy_;
  at::Device device_;
  std::vector<ActivationBytes> activations_;  ///< by unit, while the budget is open
};

}  // namespace tessera::parallel
