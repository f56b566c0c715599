// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/adamw.hpp"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "support/relative_distance.hpp"
#include "tessera/base/error.hpp"

namespace tessera::optim {
namespace {

using test::relative_distance;

ParamState state_of(const std::string& fqn, const at::Tensor& param, double weight_decay) {
  return {.fqn = fqn,
          .param = param.clone(),
          .grad = at::empty_like(param),
          .exp_avg = at::zeros_like(param),
          .exp_avg_sq = at::zeros_like(param),
          .weight_decay = weight_decay};
}

/// Ten steps of two groups beside LibTorch's, with gradients of fixed seeds and clipping.
template <class Theirs, class TheirOptions>
void follow_torch(const AdamWOptions& our_options, at::ScalarType dtype, double limit) {
  at::manual_seed(1);
  const at::Tensor a = at::randn({33, 7}, at::kDouble).to(dtype),
                   b = at::randn({50}, at::kDouble).to(dtype);
  const at::Tensor ta = a.clone().requires_grad_(), tb = b.clone().requires_grad_();
  const auto options = [](double decay) {
    return std::make_unique<TheirOptions>(
        TheirOptions(1e-2).betas({0.9, 0.95}).weight_decay(decay));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{ta}, options(0.1));
  groups.emplace_back(std::vector<at::Tensor>{tb}, options(0.0));
  Theirs theirs(groups, TheirOptions(1e-2));
  AdamW ours(our_options);
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
  EXPECT_LE(relative_distance(states[0].param, ta.detach()), limit);
  EXPECT_LE(relative_distance(states[1].param, tb.detach()), limit);
}

TEST(AdamW, FollowsTorch) {
  follow_torch<torch::optim::AdamW, torch::optim::AdamWOptions>({}, at::kDouble, 1e-14);
  follow_torch<torch::optim::AdamW, torch::optim::AdamWOptions>({}, at::kFloat, 3e-7);
}

TEST(AdamW, WithCoupledDecayFollowsTorchsAdam) {
  const AdamWOptions adam{.coupled_decay = true};
  follow_torch<torch::optim::Adam, torch::optim::AdamOptions>(adam, at::kDouble, 1e-14);
  follow_torch<torch::optim::Adam, torch::optim::AdamOptions>(adam, at::kFloat, 3e-7);
}

/// Parameters of one memory: some follow each other, some have another decay, and there are
/// gaps in masters, or in moments alone.
struct Memory {
  at::Tensor param = at::randn({400}), grad = at::randn({400}), exp_avg = at::zeros({400}),
             exp_avg_sq = at::zeros({400});

  ParamState state(std::int64_t begin, const Shape& shape, std::int64_t moments_begin) const {
    const auto part = [&](const at::Tensor& all, std::int64_t at) {
      return all.narrow(0, at, element_count(shape)).view(shape);
    };
    return {.fqn = "part",
            .param = part(param, begin),
            .grad = part(grad, begin),
            .exp_avg = part(exp_avg, moments_begin),
            .exp_avg_sq = part(exp_avg_sq, moments_begin)};
  }
  std::vector<ParamState> states() const {
    std::vector<ParamState> all{
        state(0, {10, 7}, 0),  state(70, {3}, 70),    state(73, {0, 4}, 73),
        state(73, {27}, 73),   state(100, {50}, 100), state(150, {20}, 150),
        state(180, {40}, 180), state(220, {40}, 230), state(260, {20, 5}, 270)};
    all[4].weight_decay = 0.3;
    all[5].weight_decay = 0.3;
    return all;
  }
};

TEST(AdamW, HasTheSameBitsForNeighboursAsForEach) {
  at::manual_seed(2);
  const Memory memory;
  std::vector<ParamState> together = memory.states();
  std::vector<std::vector<ParamState>> apart;
  for (const ParamState& state : together) {
    apart.push_back({state});
    for (at::Tensor* tensor : {&apart.back()[0].param, &apart.back()[0].grad,
                               &apart.back()[0].exp_avg, &apart.back()[0].exp_avg_sq})
      *tensor = tensor->clone();
  }
  const AdamW adamw{AdamWOptions{}};
  const at::Tensor gap = memory.param.narrow(0, 170, 10).clone();
  for (int t = 1; t <= 3; ++t) {
    adamw.step(together, 1e-2, t, 0.5);
    for (std::vector<ParamState>& each : apart) adamw.step(each, 1e-2, t, 0.5);
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(at::equal(together[i].param, apart[i][0].param)) << i;
    EXPECT_TRUE(at::equal(together[i].exp_avg, apart[i][0].exp_avg)) << i;
    EXPECT_TRUE(at::equal(together[i].exp_avg_sq, apart[i][0].exp_avg_sq)) << i;
  }
  EXPECT_TRUE(at::equal(memory.param.narrow(0, 170, 10), gap));
  EXPECT_TRUE(at::equal(memory.exp_avg.narrow(0, 220, 10), at::zeros({10})));
}

TEST(AdamW, SkipsEmptyShards) {
  std::vector<ParamState> states{state_of("full", at::ones({4}), 0.1),
                                 state_of("empty", at::empty({0, 3}), 0.1)};
  states[0].grad.fill_(1.0);
  AdamW adamw{AdamWOptions{}};
  adamw.step(states, 0.0, 1);
  EXPECT_TRUE(at::equal(states[0].param, at::ones({4})));
}

TEST(AdamW, RefusesTensorsOfAnotherShape) {
  AdamW adamw{AdamWOptions{}};
  std::vector<ParamState> states{state_of("w", at::ones({4, 2}), 0.1)};
  states[0].grad.fill_(1.0);
  EXPECT_THROW(adamw.step(states, 1e-2, 0), ContractViolation);
  const std::vector<ParamState> right = states;
  states[0].grad = at::ones({2, 4}).t();
  EXPECT_THROW(adamw.step(states, 1e-2, 1), ContractViolation);
  states[0].grad = at::ones({8});
  EXPECT_THROW(adamw.step(states, 1e-2, 1), ContractViolation);
  states = right;
  states[0].param = at::ones({4, 4}).narrow(1, 0, 2);
  EXPECT_THROW(adamw.step(states, 1e-2, 1), ContractViolation);
  EXPECT_TRUE(at::equal(right[0].param, at::ones({4, 2})));
}

TEST(AdamW, RefusesImpossibleOptions) {
  EXPECT_THROW(AdamW({.beta1 = 1.0}), Error);
  EXPECT_THROW(AdamW({.beta2 = -0.1}), Error);
  EXPECT_THROW(AdamW({.eps = -1.0}), Error);
}

}  // namespace
}  // namespace tessera::optim
