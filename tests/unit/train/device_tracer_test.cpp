// SPDX-License-Identifier: Apache-2.0
#include "device_tracer.hpp"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/metrics/meter.hpp"

namespace tessera::train {
namespace {

/// What Kineto records has the shape that traces and tables take. A GPU's kernels come as these
/// operators of the host.
TEST(DeviceTracer, WhatIsRecordedIsPartOfATrace) {
  const at::Tensor matrix = at::ones({256, 256});
  const double began = metrics::monotonic_seconds();
  kernels::DeviceRecording recording(at::kCPU);
  for (int i = 0; i < 3; ++i) at::mm(matrix, matrix);
  const std::vector<DeviceSpan> spans = recording.end();
  const double ended = metrics::monotonic_seconds();

  metrics::RankTrace trace{0, "rank 0", {"steps"}, {{"step 1", 0, began, ended, -1}}};
  metrics::add_streams(trace, spans);
  ASSERT_EQ(trace.tracks.size(), 2u);
  const auto json = nlohmann::json::parse(metrics::trace_file({metrics::trace_events(trace)}));
  int products = 0;
  double end = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("tid") != 1 || event.at("ph") != "X") continue;
    products += event.at("name") == "mm";
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_GE(event.at("ts").get<double>(), end - 0.002);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(products, 3);
  EXPECT_NE(metrics::kernel_table({"step 1", {{began, ended}}}, spans).find("\n  mm "),
            std::string::npos);
}

TEST(DeviceTracer, DoesNothingOnTheHost) {
  DeviceTracer tracer(at::kCPU);
  tracer.begin_step();
  at::ones({2, 2});
  EXPECT_GT(tracer.end_step(1, 0), 0);
  metrics::RankTrace trace;
  EXPECT_EQ(tracer.take(trace), "");
  EXPECT_TRUE(trace.tracks.empty());
}

}  // namespace
}  // namespace tessera::train
