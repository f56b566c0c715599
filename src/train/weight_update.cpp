// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/weight_update.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {
namespace {

std::vector<optim::ParamState> states_of(parallel::Stages& stages,
                                         const plan::OptimizerPlan& plan) {
  std::vector<optim::ParamState> states;
  for (const parallel::ShardedParam* param : stages.trained_params()) {
    const auto moment = [&] {
      return at::zeros_like(param->master, parallel::scalar_type_of(plan.moments));
    };
    TensorSlice slice = param->slice("");
    states.push_back({.fqn = param->spec->fqn,
                      .param = param->master,
                      .grad = param->gradient,
                      .exp_avg = moment(),
                      .exp_avg_sq = moment(),
                      .weight_decay = plan.weight_decay,
                      .whole = std::move(slice.global_shape),
                      .box = std::move(slice.box)});
  }
  return states;
}

std::vector<parallel::ShardGroup*> trained_groups(parallel::Stages& stages) {
  std::vector<parallel::ShardGroup*> groups = stages.groups();
  std::erase_if(groups, [](const parallel::ShardGroup* group) {
    return group->options().home || !group->options().trainable;
  });
  return groups;
}

}  // namespace

WeightUpdate::WeightUpdate(const plan::OptimizerPlan& plan, parallel::Stages& stages)
    : plan_(plan),
      schedule_(plan.schedule),
      optimizer_({plan.beta1, plan.beta2, plan.eps, plan.rounding_seed}),
      states_(states_of(stages, plan)),
      groups_(trained_groups(stages)) {}

void WeightUpdate::apply(double lr, double norm, std::int64_t t) {
  const double clip = std::min(1.0, plan_.max_norm / (norm + 1e-6));
  auto state = states_.begin();
  for (parallel::ShardGroup* group : groups_)
    for (const parallel::ShardedParam& param : group->params()) {
      TESSERA_EXPECT(state != states_.end() && state->param.is_same(param.master),
                     "the state of {} is not where its group has it", param.spec->fqn);
      (state++)->compute_copy = group->kept_copy().to_write(param.storage);
    }
  optimizer_.step(states_, lr, t, clip);
  for (parallel::ShardGroup* group : groups_) group->kept_copy().mark_current();
}

}  // namespace tessera::train
