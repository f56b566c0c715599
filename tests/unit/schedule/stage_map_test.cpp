// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/stage_map.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::schedule {
namespace {

TEST(StageMap, Forms) {
  EXPECT_EQ(StageMap::loop(2, 2), StageMap::of({0, 1, 0, 1}));
  EXPECT_EQ(StageMap::v(2), StageMap::of({0, 1, 1, 0}));
  EXPECT_EQ(StageMap::parse("0,1,1,0", 4, 2, "map"), StageMap::v(2));
  EXPECT_EQ(StageMap::parse("v", 6, 2, "map"), StageMap::of({0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(StageMap::v(3).stages_of(PipelineRank(2)), (std::vector{StageIndex(2), StageIndex(3)}));
  for (const char* wrong : {"w", "0,1,x", "0,1", "0,1,2,0", "0,0,0,0", "-1,0,1,0", "1,1,1,1"})
    EXPECT_THROW(StageMap::parse(wrong, 4, 2, "map"), Error) << wrong;
  EXPECT_THROW(StageMap::parse("loop", 5, 2, "map"), Error);
}

}  // namespace
}  // namespace tessera::schedule
