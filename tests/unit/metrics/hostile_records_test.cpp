// SPDX-License-Identifier: Apache-2.0
// Files that fuzzing found, or could have: what they hold costs neither time nor memory beyond
// their length.
#include <gtest/gtest.h>

#include <limits>

#include "slowdown.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/metrics/jsonl_sink.hpp"

namespace tessera::metrics {
namespace {

using tessera::test::put;
using tessera::test::TemporaryFolder;

std::vector<StepRecord> records_in(const std::string& text) {
  const TemporaryFolder folder;
  put(folder / "metrics.jsonl", text);
  return read_records(folder / "metrics.jsonl");
}

TEST(HostileRecords, NumbersBeyondTheirTypeStayDefined) {
  const auto records = records_in(
      "{\"step\": 18446744073709551615, \"tokens\": 1e300, \"memory_bytes\": -9223372036854775808, "
      "\"loss\": "
      "-1e308}\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].step, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(records[0].memory_bytes, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(records[0].tokens, StepRecord().tokens);
}

TEST(HostileRecords, WhatIsNotARecordIsRefused) {
  for (const char* line :
       {"5", "[1, 2]", "\"step\"", "null", "true", "[{\"step\": 1}]", "{\"a\": {\"step\": 1}}",
        "{\"step\": 1.0}", "{\"step\": \"1\"}", "{\"step\": 0}", "{\"step\": 1} x",
        "{\"step\": 1, \"loss\": \"NaN\"}", "{\"step\": 1, \"grad_norm\": true}"})
    EXPECT_THROW(records_in(std::string(line) + "\n"), Error) << line;
}

TEST(HostileRecords, WhatIsNestedIsPassedOver) {
  std::string deep(200'000, '[');
  deep += "1" + std::string(200'000, ']');
  const auto records = records_in(
      "{\"x\": " + deep + ", \"y\": {\"loss\": 7, \"step\": 9}, \"step\": 3, \"loss\": 2}\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].step, 3);
  EXPECT_EQ(records[0].loss, 2);
  EXPECT_TRUE(records[0].extra.empty());
}

TEST(HostileRecords, ManyKeysCostTheirLength) {
  std::string line = "{\"step\": 1";
  for (int i = 0; i < 200'000; ++i) line += ", \"k" + std::to_string(i) + "\": 1";
  const double begin = tessera::test::cpu_seconds();
  EXPECT_EQ(records_in(line + "}\n").at(0).extra.size(), 200'000u);
  EXPECT_LT(tessera::test::cpu_seconds() - begin, tessera::test::kSlowdown * 10);
}

}  // namespace
}  // namespace tessera::metrics
