// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/human.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tessera::metrics {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(Human, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1 << 20), "1.00 MiB");
  EXPECT_EQ(human_bytes(1'320'702'444), "1.23 GiB");
  EXPECT_EQ(human_bytes(1023), "1.00 KiB") << "never four digits";
  EXPECT_EQ(human_bytes(-2048), "-2.00 KiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::int64_t>::max()), "8192 PiB");
}

TEST(Human, Counts) {
  EXPECT_EQ(human_count(7), "7");
  EXPECT_EQ(human_count(19.94), "19.9");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(999.6), "1.00k");
  EXPECT_EQ(human_count(45'600), "45.6k");
  EXPECT_EQ(human_count(99'950), "100k");
  EXPECT_EQ(human_count(8.03e9), "8.03B");
  EXPECT_EQ(human_count(1.2e12), "1.20T");
  EXPECT_EQ(human_count(kUnknown), "-");
  EXPECT_EQ(human_count(infinite), "-");
}

TEST(Human, Flops) {
  EXPECT_EQ(human_flops(989.5e12), "990 TFLOP/s");
  EXPECT_EQ(human_flops(2.25e15), "2.25 PFLOP/s");
  EXPECT_EQ(human_flops(kUnknown), "-");
}

TEST(Human, Durations) {
  EXPECT_EQ(human_duration(0), "0.00s");
  EXPECT_EQ(human_duration(0.35), "0.35s");
  EXPECT_EQ(human_duration(8.21), "8.2s");
  EXPECT_EQ(human_duration(41), "41s");
  EXPECT_EQ(human_duration(59.7), "1m00s");
  EXPECT_EQ(human_duration(185), "3m05s");
  EXPECT_EQ(human_duration(3599.9), "1h00m");
  EXPECT_EQ(human_duration(7380), "2h03m");
  EXPECT_EQ(human_duration(86399), "1d00h");
  EXPECT_EQ(human_duration(4 * 86400 + 7200), "4d02h");
  EXPECT_EQ(human_duration(kUnknown), "-");
  EXPECT_EQ(human_duration(-1), "-");
  EXPECT_EQ(human_duration(infinite), "-");
  EXPECT_EQ(human_duration(1e30), "-");
}

}  // namespace
}  // namespace tessera::metrics
