// SPDX-License-Identifier: Apache-2.0
// Rows of a fixed number for experts: the same training, whatever the capacity.
#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/gradient_case.hpp"

namespace tessera::test {
namespace {

/// Free rows are a part of no sum.
TEST(Gradient, CapacitiesChangeNoBit) {
  if (world().size() == 1) return;
  for (const std::string family : {"deepseek_v3", "gpt_oss", "mixtral"}) {
    if (world().size() > 4 && family == "mixtral") continue;
    GradientCase row;
    row.family = family;
    row.pp = world().size() >= 4 ? 2 : 1;
    row.tp = world().size() >= 8 ? 2 : 1;
    row.dp = world().size() / row.pp / row.tp;
    row.ep = row.dp * row.tp;
    if (row.pp > 1) row.schedule = "ZBH1";
    row.recompute = "full";
    row.accumulation = 2;
    for (const char* rounded : {"", "float8", "mx"}) {
      if (rounded[0] != 0 && (family != "deepseek_v3" || world().size() > 4)) continue;
      row.experts = rounded;
      row.capacity = 0;
      const std::vector<double> without = three_steps(world(), row);
      for (const double capacity : {1.0, 4.0}) {
        row.capacity = capacity;
        EXPECT_EQ(three_steps(world(), row), without) << row.name();
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
