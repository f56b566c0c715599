// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/weight_update.hpp"

#include <algorithm>

namespace tessera::train {
namespace {

std::vector<optim::ParamState> states_of(parallel::Stages& stages, double weight_decay) {
  std::vector<optim::ParamState> states;
  for (const parallel::ShardedParam* param : stages.trained_params())
    states.push_back({param->spec->fqn, param->master, param->gradient,
                      at::zeros_like(param->master), at::zeros_like(param->master), weight_decay});
  return states;
}

}  // namespace

WeightUpdate::WeightUpdate(const plan::OptimizerPlan& plan, parallel::Stages& stages)
    : plan_(plan),
      schedule_(plan.schedule),
      optimizer_({plan.beta1, plan.beta2, plan.eps}),
      states_(states_of(stages, plan.weight_decay)) {}

void WeightUpdate::apply(double lr, double norm, std::int64_t t) {
  const double clip = std::min(1.0, plan_.max_norm / (norm + 1e-6));
  optimizer_.step(states_, lr, t, clip);
}

}  // namespace tessera::train
