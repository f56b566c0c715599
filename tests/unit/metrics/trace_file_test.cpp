// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/trace_file.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tessera::metrics {
namespace {

TEST(TraceFile, HasAProcessForEachRankAndAThreadForEachTrack) {
  const RankTrace one{3, "rank 3", {"steps", "tp"}, {{"all_reduce", 1, 0.5, 0.75, 12}}};
  const RankTrace other{4, "rank 4", {"steps"}, {{"step 1", 0, 0, 1, -1}}};
  const auto json = nlohmann::json::parse(trace_file({trace_events(one), trace_events(other)}));
  const auto& events = json.at("traceEvents");
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0]["args"]["name"], "rank 3");
  EXPECT_EQ(events[2]["args"]["name"], "tp");
  EXPECT_EQ(events[3].dump(),
            R"({"args":{"elements":12},"dur":250000.0,"name":"all_reduce","ph":"X","pid":3,)"
            R"("tid":1,"ts":500000.0})");
  EXPECT_FALSE(events[6].contains("args"));
}

TEST(TraceFile, CountersHaveAllFigures) {
  const auto json = nlohmann::json::parse(counter_event(2, "memory", 0.5, {{"a", 1}, {"b c", 2}}));
  EXPECT_EQ(json.dump(), R"({"args":{"a":1,"b c":2},"dur":0,"name":"memory","ph":"C","pid":2,)"
                         R"("tid":0,"ts":500000.0})");
}

TEST(TraceFile, ClocksDifferByTheMedian) {
  EXPECT_EQ(clock_offset({10, 20, 30}, {1, 11, 29}), 9) << "the third barrier came late";
  EXPECT_EQ(clock_offset({5}, {5}), 0);
}

}  // namespace
}  // namespace tessera::metrics
