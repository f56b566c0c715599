// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::optim {
namespace {

struct Case {
  plan::LearningRatePlan options;
  std::vector<double> from_torchtitan;  ///< v0.2.2's linear_warmup_stable_decay at steps 0, 1, ...
};

const Case cases[] = {
    {{.warmup_steps = 5, .total_steps = 20},
     {0.2,
      0.4,
      0.6,
      0.8,
      1,
      1,
      0.93333333333333335,
      0.8666666666666667,
      0.8,
      0.73333333333333339,
      0.66666666666666674,
      0.6,
      0.53333333333333333,
      0.46666666666666667,
      0.4,
      0.33333333333333337,
      0.26666666666666672,
      0.2,
      0.1333333333333333,
      0.066666666666666652}},
    {{.warmup_steps = 5,
      .total_steps = 20,
      .decay_ratio = 0.5,
      .decay = plan::Decay::cosine,
      .min_lr_factor = 0.1},
     {0.2,
      0.4,
      0.6,
      0.8,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0.97797543233281914,
      0.91405764746872631,
      0.8145033635316129,
      0.68905764746872633,
      0.55,
      0.41094235253127376,
      0.28549663646838719,
      0.18594235253127372,
      0.12202456766718092}},
    {{.warmup_steps = 4,
      .total_steps = 20,
      .decay_ratio = 0.25,
      .decay = plan::Decay::sqrt,
      .min_lr_factor = 0.2},
     {0.25,
      0.5,
      0.75,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0.6422291236000337,
      0.49403557437305934,
      0.3803226646068133,
      0.28445824720006735}},
    {{.warmup_steps = 20, .total_steps = 10}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}},
    {{.warmup_steps = 6, .total_steps = 10, .decay_ratio = 0.8},
     {0.16666666666666666, 0.33333333333333331, 0.5, 0.66666666666666663, 0.83333333333333337, 1, 1,
      0.75, 0.5, 0.25}},
    {{.warmup_steps = 0, .total_steps = 5, .decay_ratio = 0.5, .decay = plan::Decay::cosine},
     {1, 1, 1, 1, 0.5}},
    {{.warmup_steps = 2, .total_steps = 6, .decay_ratio = 0.0}, {0.5, 1, 1, 1, 1, 1}},
};

TEST(Schedule, IsTorchTitans) {
  for (const Case& c : cases) {
    const Schedule schedule(c.options);
    for (std::size_t step = 0; step < c.from_torchtitan.size(); ++step)
      EXPECT_NEAR(schedule.factor(static_cast<std::int64_t>(step)), c.from_torchtitan[step], 1e-15)
          << step;
  }
}

// The learning rates of the reference case llama_a: 8e-4, warm-up 2, no decay within the run.
TEST(Schedule, GivesTheReferenceRates) {
  const Schedule schedule({.warmup_steps = 2, .total_steps = 20, .decay_ratio = 0.0});
  EXPECT_DOUBLE_EQ(8e-4 * schedule.factor(0), 4e-4);
  for (int step = 1; step < 20; ++step) EXPECT_EQ(8e-4 * schedule.factor(step), 8e-4);
}

TEST(Schedule, HoldsTheLastValue) {
  const Schedule plain(cases[0].options);
  EXPECT_EQ(plain.factor(1000), plain.factor(19));
  EXPECT_EQ(Schedule({.warmup_steps = 0, .total_steps = 0}).factor(3), 1.0);
}

TEST(Schedule, TakesSharesOfTheRunAlone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double wrong : {-0.1, 1.5, nan}) {
    EXPECT_THROW(Schedule({.total_steps = 4, .decay_ratio = wrong}), ContractViolation) << wrong;
    EXPECT_THROW(Schedule({.total_steps = 4, .min_lr_factor = wrong}), ContractViolation) << wrong;
  }
}

}  // namespace
}  // namespace tessera::optim
