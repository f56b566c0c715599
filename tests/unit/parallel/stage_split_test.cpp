#include "tessera/parallel/stage_split.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::parallel {
namespace {

model::Model with_layers(std::int64_t layers) {
  model::Model model;
  model.dimensions.layers = layers;
  return model;
}

std::vector<std::int64_t> blocks(std::int64_t layers, int stages) {
  std::vector<std::int64_t> result;
  for (const Range& range : split_by_layers(with_layers(layers), stages, 1, 1)) result.push_back(range.size);
  if (stages > 0) {
    result.front() -= 1;
    result.back() -= 1;
  }
  return result;
}

TEST(StageSplit, FollowsTorchTitan) {
  EXPECT_EQ(blocks(32, 4), (std::vector<std::int64_t>{8, 9, 8, 7}));
  EXPECT_EQ(blocks(6, 2), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(blocks(4, 4), (std::vector<std::int64_t>{1, 2, 1, 0}));
}

TEST(StageSplit, CoversEveryUnitOnce) {
  for (std::int64_t layers = 1; layers <= 20; ++layers)
    for (int stages = 1; stages <= layers + 2; ++stages) {
      std::int64_t next = 0;
      for (const Range& range : split_by_layers(with_layers(layers), stages, 1, 1)) {
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size, 0);
        next = range.end();
      }
      EXPECT_EQ(next, layers + 2) << layers << " layers on " << stages;
    }
}

TEST(StageSplit, RefusesMoreStagesThanParts) { EXPECT_THROW(split_by_layers(with_layers(2), 5, 1, 1), Error); }

}  // namespace
}  // namespace tessera::parallel
