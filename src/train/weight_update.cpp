// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/weight_update.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {
namespace {

/// In the groups' order. Moments are parts of one tensor for each group, as the masters are.
std::vector<optim::ParamState> states_of(const std::vector<parallel::ShardGroup*>& groups,
                                         const plan::OptimizerPlan& plan) {
  std::vector<optim::ParamState> states;
  for (const parallel::ShardGroup* group : groups) {
    const auto moments = [&] {
      return at::zeros_like(group->flat_master(), parallel::scalar_type_of(plan.moments));
    };
    const at::Tensor exp_avg = moments(), exp_avg_sq = moments();
    for (const parallel::ShardedParam& param : group->params()) {
      TensorSlice slice = param.slice("");
      states.push_back({.fqn = param.spec->fqn,
                        .param = param.master,
                        .grad = param.gradient,
                        .exp_avg = param.in(exp_avg),
                        .exp_avg_sq = param.in(exp_avg_sq),
                        .weight_decay = plan.weight_decay,
                        .whole = std::move(slice.global_shape),
                        .box = std::move(slice.box)});
    }
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
      optimizer_({plan.beta1, plan.beta2, plan.eps, plan.coupled_decay, plan.rounding_seed}),
      groups_(trained_groups(stages)),
      states_(states_of(groups_, plan)) {
  const parallel::Params trained = stages.trained_params();
  const auto is_of = [](const optim::ParamState& state, const parallel::ShardedParam* param) {
    return state.param.is_same(param->master);
  };
  TESSERA_EXPECT(std::ranges::equal(states_, trained, is_of),
                 "groups and stages have trained parameters in another order");
}

void WeightUpdate::apply(double lr, double norm, std::int64_t t) {
  const double clip = std::min(1.0, plan_.max_norm / (norm + 1e-6));
  auto state = states_.begin();
  for (parallel::ShardGroup* group : groups_)
    for (const parallel::ShardedParam& param : group->params())
      (state++)->compute_copy = group->kept_copy().to_write(param.storage);
  optimizer_.step(states_, lr, t, clip);
  for (parallel::ShardGroup* group : groups_) group->kept_copy().mark_current();
}

std::int64_t WeightUpdate::moment_bytes(at::Device device) const {
  std::int64_t bytes = 0;
  auto state = states_.begin();
  for (const parallel::ShardGroup* group : groups_) {  // whose parameters share the memory
    bytes +=
        parallel::bytes_on(device, state->exp_avg) + parallel::bytes_on(device, state->exp_avg_sq);
    state += std::ssize(group->params());
  }
  return bytes;
}

}  // namespace tessera::train
