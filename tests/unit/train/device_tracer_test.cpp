// SPDX-License-Identifier: Apache-2.0
#include "device_tracer.hpp"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/metrics/meter.hpp"

namespace tessera::train {
namespace {

/// A step of a few operators. Returns its beginning and end.
std::pair<double, double> step(DeviceTracer& tracer, std::int64_t number, int products) {
  const at::Tensor matrix = at::ones({256, 256});
  tracer.begin_step();
  const double began = metrics::monotonic_seconds();
  for (int i = 0; i < products; ++i) at::mm(matrix, matrix);
  return {began, tracer.end_step(number, began)};
}

/// What Kineto records has the shape that traces and tables take. The host's operators are here
/// what kernels are on a GPU.
TEST(DeviceTracer, StepsArePartOfATraceAndOfOneTable) {
  DeviceTracer tracer(at::kCPU);
  const auto [began, between] = step(tracer, 3, 2);
  at::mm(at::ones({2, 2}), at::ones({2, 2}));  // not traced
  const auto [again, ended] = step(tracer, 4, 3);
  ASSERT_LT(began, ended);

  metrics::RankTrace trace{0, "rank 0", {"steps"}, {}};
  const std::string table = tracer.take(trace);
  EXPECT_THAT(table, testing::HasSubstr("the GPU in steps 3 to 4: busy "));
  EXPECT_THAT(table, testing::ContainsRegex("\n  mm +5 "));
  ASSERT_EQ(trace.tracks.size(), 2u);
  const auto json = nlohmann::json::parse(metrics::trace_file({metrics::trace_events(trace)}));
  int products = 0;
  double end = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    EXPECT_EQ(event.at("tid"), 1);
    products += event.at("name") == "mm" ? 1 : 0;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_GE(event.at("ts").get<double>(), end - 0.002);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(products, 5);
  EXPECT_EQ(tracer.take(trace), "") << "nothing is left";
  EXPECT_EQ(trace.tracks.size(), 2u);
}

TEST(DeviceTracer, AStepWithoutAnEndLeavesNothing) {
  DeviceTracer tracer(at::kCPU);
  tracer.begin_step();
  at::ones({2, 2});
  tracer.forget_step();
  step(tracer, 7, 1);
  metrics::RankTrace trace;
  const std::string table = tracer.take(trace);
  EXPECT_THAT(table, testing::HasSubstr("the GPU in step 7: busy "));
  EXPECT_THAT(table, testing::ContainsRegex("\n  mm +1 "));
}

TEST(DeviceTracer, ALogHasOneWholeTable) {
  DeviceTracer tracer(at::kCPU);
  EXPECT_EQ(tracer.for_log(""), "");
  EXPECT_EQ(tracer.for_log("step 4\n  mm\n  add"), "step 4\n  mm\n  add");
  EXPECT_EQ(tracer.for_log("step 8\n  mm\n  add"), "step 8");
}

}  // namespace
}  // namespace tessera::train
