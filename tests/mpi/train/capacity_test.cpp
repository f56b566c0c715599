// SPDX-License-Identifier: Apache-2.0
// Rows of a fixed number for experts: the same training, whatever the capacity.
#include <gtest/gtest.h>

#include <cmath>

#include "device_values.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/gradient_case.hpp"

namespace tessera::test {
namespace {

/// The same bits, but where sums of biases' gradients may take another order.
void expect_same(const std::vector<double>& found, const std::vector<double>& wanted,
                 const GradientCase& row) {
  ASSERT_EQ(found.size(), wanted.size());
  const double apart = row.family == "gpt_oss" ? 1e-12 : 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    EXPECT_NEAR(found[i], wanted[i], apart * std::abs(wanted[i])) << row.name() << ", " << i;
  }
}

/// Free rows are a part of no sum. Device memory travels over NCCL, and over MPI where all fit.
void expect_no_change(GradientCase row, std::initializer_list<double> capacities = {1, 4}) {
  const std::vector<double> without = three_steps(world(), row);
  for (const double capacity : capacities) {
    row.capacity = capacity;
    expect_same(three_steps(world(), row), without, row);
  }
  if (!on_device() || !row.experts.empty()) return;
  row.over_nccl = false;
  expect_same(three_steps(world(), row), without, row);
}

TEST(Gradient, CapacitiesChangeNoBit) {
  if (world().size() == 1) return;
  const bool few = world().size() <= 2 && !on_device();  // others take longer: one kind, at most
  const std::string rounded_kind = on_device() ? "float8" : "mx";
  const bool rounds = world().size() == 8 || (on_device() && world().size() <= 4);  // 8: the soak
  for (const std::string family : {"deepseek_v3", "gpt_oss", "mixtral"}) {
    if (!few && family != "deepseek_v3") continue;
    GradientCase row = mixture_case(world().size(), family);
    if (row.pp > 1) row.schedule = "ZBH1";
    row.accumulation = 2;
    row.sends_once = true;
    expect_no_change(row);
    row.sends_once = false;
    if (world().size() < 8) expect_no_change(row);
    for (const std::string rounded : {"float8", "mx"}) {
      row.experts = rounded;
      if (family != "deepseek_v3") continue;
      if (few)
        expect_no_change(row);
      else if (rounded == rounded_kind && rounds)
        expect_no_change(row, {4});
    }
  }
}

}  // namespace
}  // namespace tessera::test
