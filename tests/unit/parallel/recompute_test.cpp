// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/recompute.hpp"

#include <gtest/gtest.h>

#include "tessera/kernels/torch_internal.hpp"

namespace tessera::parallel {
namespace {

using model::Flow;
using model::Slot;
using enum Recompute;

std::int64_t bytes(const std::vector<ActivationBytes>& units,
                   const std::vector<Recompute>& chosen) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < units.size(); ++i)
    sum += chosen[i] == nothing      ? units[i].nothing
           : chosen[i] == operations ? units[i].operations
                                     : units[i].unit;
  return sum;
}

TEST(Recompute, EndsOfTheBudget) {
  const std::vector<ActivationBytes> units(4, {100, 60, 10});
  EXPECT_EQ(recompute_within(units, 1), std::vector<Recompute>(4, nothing));
  EXPECT_EQ(recompute_within(units, 0), std::vector<Recompute>(4, unit));
}

TEST(Recompute, ByOperationBeforeWholeUnits) {
  const std::vector<ActivationBytes> units(4, {100, 60, 10});
  EXPECT_EQ(recompute_within(units, 0.9),
            (std::vector<Recompute>{operations, nothing, nothing, nothing}));
  EXPECT_EQ(recompute_within(units, 0.56), (std::vector<Recompute>(4, operations)));
  EXPECT_EQ(recompute_within(units, 0.5),
            (std::vector<Recompute>{unit, operations, operations, operations}));
}

TEST(Recompute, StaysBelowEveryBudgetAndGivesBackWhatIsLeft) {
  const std::vector<ActivationBytes> units{
      {100, 90, 10}, {400, 80, 10}, {30, 30, 30}, {200, 150, 0}};
  for (int i = 0; i <= 100; ++i) {
    const double budget = i / 100.0;
    const auto chosen = recompute_within(units, budget);
    const std::int64_t allowed = 50 + static_cast<std::int64_t>(budget * 680);
    EXPECT_LE(bytes(units, chosen), allowed) << budget;
    for (std::size_t k = 0; k < units.size(); ++k)
      if (chosen[k] == operations) {
        EXPECT_GT(bytes(units, chosen) - units[k].operations + units[k].nothing, allowed);
      }
  }
}

TEST(Remakes, GraphsSeeTheSameBitsAfterTheMemoryWasGone) {
  at::manual_seed(1);
  const auto leaf = [](std::vector<std::int64_t> shape) {
    return at::randn(shape).requires_grad_(true);
  };
  const at::Tensor x = leaf({64, 32}), weight = leaf({16, 32});
  const auto gradients = [&](Remakes* remakes) {
    const at::Tensor made = at::sigmoid(x * 2);
    if (remakes) remakes->add(made, [x] { return at::sigmoid(x * 2); });
    const at::Tensor loss = at::linear(made, weight).square().sum();
    if (remakes) {
      remakes->drop({}, {});
      EXPECT_EQ(remakes->dropped_bytes(), 64 * 32 * 4);
      EXPECT_EQ(kernels::storage_bytes(made), 0u);
      remakes->restore();
    }
    return torch::autograd::grad({loss}, {x, weight});
  };
  Remakes remakes;
  const auto plain = gradients(nullptr), remade = gradients(&remakes);
  EXPECT_TRUE(at::equal(plain[0], remade[0]));
  EXPECT_TRUE(at::equal(plain[1], remade[1]));
}

TEST(Remakes, WhatOthersSeeStays) {
  Flow in, out;
  out[Slot::h] = at::ones({4, 4}).view({2, 8});
  Remakes remakes;
  remakes.add(out[Slot::h].view({16}), [] { return at::zeros({16}); });
  remakes.drop(in, out);
  EXPECT_EQ(remakes.dropped_bytes(), 0);
  remakes.restore();
  EXPECT_EQ(out[Slot::h].sum().item<float>(), 16);
}

#ifndef __SANITIZE_ADDRESS__  // whose allocator is not the one that is asked
TEST(AllocatedBytes, FollowTensors) {
  const std::int64_t before = kernels::allocated_bytes(at::kCPU);
  const at::Tensor large = at::empty({1 << 20});
  EXPECT_NEAR(static_cast<double>(kernels::allocated_bytes(at::kCPU) - before), 4 << 20, 1 << 16);
}
#endif

}  // namespace
}  // namespace tessera::parallel
