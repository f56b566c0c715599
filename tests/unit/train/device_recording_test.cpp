// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/device_recording.hpp"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace tessera::kernels {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t products_in(const std::vector<DeviceSpan>& spans) {
  return std::ranges::count(spans, "aten::mm", &DeviceSpan::name);
}

TEST(DeviceRecording, HasTheOperatorsOfThisThreadOnTheSteadyClock) {
  const at::Tensor matrix = at::ones({64, 64});
  at::mm(matrix, matrix);
  const double before = now();
  DeviceRecording recording(at::kCPU);
  at::mm(matrix, matrix);
  at::mm(matrix, matrix);
  const std::vector<DeviceSpan> spans = recording.end();
  const double after = now();
  EXPECT_EQ(products_in(spans), 2);
  EXPECT_TRUE(std::ranges::is_sorted(spans, {}, &DeviceSpan::begin));
  constexpr double kSlack = 0.5;  // two clocks, of which one may be set
  for (const DeviceSpan& span : spans) {
    EXPECT_GE(span.begin, before - kSlack) << span.name;
    EXPECT_LE(span.begin, span.end) << span.name;
    EXPECT_LE(span.end, after + kSlack) << span.name;
  }
  EXPECT_TRUE(recording.end().empty());
}

TEST(DeviceRecording, OneFollowsAnother) {
  const at::Tensor matrix = at::ones({8, 8});
  { const DeviceRecording lost(at::kCPU); }
  EXPECT_FALSE(at::hasThreadLocalCallbacks()) << "it records on";
  DeviceRecording recording(at::kCPU);
  at::mm(matrix, matrix);
  EXPECT_EQ(products_in(recording.end()), 1);
}

}  // namespace
}  // namespace tessera::kernels
