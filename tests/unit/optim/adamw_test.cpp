// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/adamw.hpp"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "tessera/base/error.hpp"

namespace tessera::optim {
namespace {

ParamState state_of(const std::string& fqn, const at::Tensor& param, double weight_decay) {
  return {.fqn = fqn,
          .param = param.clone(),
          .grad = at::empty_like(param),
          .exp_avg = at::zeros_like(param),
          .exp_avg_sq = at::zeros_like(param),
          .weight_decay = weight_decay};
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / b.to(at::kDouble).norm()).item<double>();
}

/// Ten steps of two groups beside torch::optim::AdamW, with gradients of fixed seeds and clipping.
void follow_torch(at::ScalarType dtype, double limit) {
  at::manual_seed(1);
  const at::Tensor a = at::randn({33, 7}, at::kDouble).to(dtype),
                   b = at::randn({50}, at::kDouble).to(dtype);
  const at::Tensor ta = a.clone().requires_grad_(), tb = b.clone().requires_grad_();
  const auto options = [](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}).weight_decay(decay));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{ta}, options(0.1));
  groups.emplace_back(std::vector<at::Tensor>{tb}, options(0.0));
  torch::optim::AdamW theirs(groups, torch::optim::AdamWOptions(1e-2));
  AdamW ours(AdamWOptions{});
  std::vector<ParamState> states{state_of("a", a, 0.1), state_of("b", b, 0.0)};
  for (int step = 0; step < 10; ++step) {
    for (auto& [state, theirs_param] : {std::pair(&states[0], ta), std::pair(&states[1], tb)}) {
      const at::Tensor gradient = at::randn(theirs_param.sizes(), at::kDouble).to(dtype);
      state->grad.copy_(gradient);
      theirs_param.mutable_grad() = gradient * 0.25;
    }
    theirs.step();
    ours.step(states, 1e-2, step + 1, 0.25);
  }
  EXPECT_LE(distance(states[0].param, ta.detach()), limit);
  EXPECT_LE(distance(states[1].param, tb.detach()), limit);
}

TEST(AdamW, FollowsTorch) {
  follow_torch(at::kDouble, 1e-14);
  follow_torch(at::kFloat, 3e-7);
}

TEST(AdamW, ScalesTheRateAndSkipsEmptyShards) {
  std::vector<ParamState> states{state_of("frozen", at::ones({4}), 0.1),
                                 state_of("empty", at::empty({0, 3}), 0.1)};
  states[0].lr_scale = 0.0;
  states[0].grad.fill_(1.0);
  AdamW adamw{AdamWOptions{}};
  adamw.step(states, 1.0, 1);
  EXPECT_TRUE(at::equal(states[0].param, at::ones({4})));
}

TEST(AdamW, RefusesImpossibleOptions) {
  EXPECT_THROW(AdamW({.beta1 = 1.0}), Error);
  EXPECT_THROW(AdamW({.beta2 = -0.1}), Error);
  EXPECT_THROW(AdamW({.eps = -1.0}), Error);
}

}  // namespace
}  // namespace tessera::optim
