// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/weight_decay.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::optim {
namespace {

TEST(WeightDecay, FirstMatchingPatternWins) {
  const WeightDecay decay(0.1, {{"norm", 0.0}, {"^layers\\.[0-1]\\.", 0.3}});
  EXPECT_EQ(decay.of("output.weight"), 0.1);
  EXPECT_EQ(decay.of("layers.0.attention_norm.weight"), 0.0);
  EXPECT_EQ(decay.of("layers.1.attention.wq.weight"), 0.3);
  EXPECT_EQ(decay.of("layers.2.attention.wq.weight"), 0.1);
}

TEST(WeightDecay, RefusesBrokenPatterns) {
  EXPECT_THROW(WeightDecay(0.1, {{"(", 0.0}}), Error);
  EXPECT_THROW(WeightDecay(-0.1), Error);
  EXPECT_THROW(WeightDecay(0.1, {{"a", -1.0}}), Error);
}

}  // namespace
}  // namespace tessera::optim
