// SPDX-License-Identifier: Apache-2.0
// How the gradients of a step change a rank's weights: AdamW at the rate of the job's schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/optim/adamw.hpp"
#include "tessera/optim/schedule.hpp"
#include "tessera/parallel/stages.hpp"
#include "tessera/plan/optimizer_plan.hpp"

namespace tessera::train {

class WeightUpdate {
 public:
  /// Allocates the moments (zero) next to the masters of `stages`. The plan must outlive this.
  WeightUpdate(const plan::OptimizerPlan& plan, parallel::Stages& stages);

  /// Learning rate of step `step` (from 0) of the schedule.
  double rate(std::int64_t step) const { return plan_.lr * schedule_.factor(step); }
  /// Update number `t` (from 1) at rate `lr`, with gradients clipped whose norm over the whole job
  /// is `norm`. After Stages::end_step(); copies that the stages keep are current then.
  void apply(double lr, double norm, std::int64_t t);
  /// Of the trained parameters, in the order of Stages::trained_params().
  std::vector<optim::ParamState>& states() { return states_; }
  const std::vector<optim::ParamState>& states() const { return states_; }
  /// Of both moments.
  std::int64_t moment_bytes(at::Device device) const;

 private:
  const plan::OptimizerPlan& plan_;
  optim::Schedule schedule_;
  optim::AdamW optimizer_;
  std::vector<parallel::ShardGroup*> groups_;  ///< that are trained
  std::vector<optim::ParamState> states_;      ///< of their parameters, in the same order
};

}  // namespace tessera::train
