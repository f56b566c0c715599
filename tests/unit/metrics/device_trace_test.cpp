// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/device_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tessera::metrics {
namespace {

using testing::HasSubstr;

TEST(DeviceTrace, NamesOfKernelsAreWithoutNamespacesAndArguments) {
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<4, "
                       "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, "
                       "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"),
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul> >");
  EXPECT_EQ(short_name("tessera::kernels::(anonymous namespace)::norm_rows(float const*, int)"),
            "norm_rows");
  EXPECT_EQ(short_name("void kernel<(bool)1>(int)"), "kernel<1>");
  EXPECT_EQ(short_name("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNN"),
            "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNN");
  EXPECT_EQ(short_name("Memcpy HtoD (Pinned -> Device)"), "Memcpy HtoD (Pinned -> Device)");
}

TEST(DeviceTrace, ALambdaIsNamedByItsFunction) {
  EXPECT_EQ(short_name("void at::native::elementwise_kernel<128, 4, "
                       "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda("
                       "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}"
                       "::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, "
                       "at::native::copy(int)::{lambda(float)#1} const&)::{lambda(int)#1}>(int)"),
            "elementwise_kernel<128, 4, gpu_kernel_impl_nocast<direct_copy_kernel_cuda>>");
}

/// Spans of a file by name: begin, end and track.
nlohmann::json events_of(const RankTrace& trace) {
  return nlohmann::json::parse(trace_file({trace_events(trace)})).at("traceEvents");
}

TEST(DeviceTrace, EachStreamHasATrackWhoseSpansFollowEachOther) {
  RankTrace trace{2, "rank 2", {"steps", "tp"}, {{"step 1", 0, 0, 1, -1}}};
  add_streams(trace, std::vector<DeviceSpan>{{"late", 7, 0.5, 0.75},
                                             {"a::early<\"x\">", 7, 0.25, 0.625},
                                             {"inside", 7, 0.5, 0.5},
                                             {"other", 20, 0.125, 1}});
  const std::vector<std::string> tracks{"steps", "tp", "GPU stream 7", "GPU stream 20"};
  EXPECT_EQ(trace.tracks, tracks);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 5u + 5u);
  const auto expect = [&](std::size_t index, const char* name, int track, double ts, double dur) {
    const nlohmann::json want = {{"name", name}, {"ph", "X"}, {"ts", ts},
                                 {"dur", dur},   {"pid", 2},  {"tid", track}};
    EXPECT_EQ(events[index], want);
  };
  expect(6, "early<\"x\">", 2, 250000, 375000);
  expect(7, "late", 2, 625000, 125000);  // overlapped by 0.125 s
  expect(8, "inside", 2, 750000, 0);
  expect(9, "other", 3, 125000, 875000);
}

TEST(DeviceTrace, TheTableHasBusyTimeAndKernelsByTime) {
  const std::vector<DeviceSpan> spans{{"void gemm(int)", 7, 1.0, 1.25},
                                      {"void small()", 7, 1.5, 1.625},
                                      {"void gemm(float)", 7, 2.0, 2.25},
                                      // At the same time on another stream: busy once.
                                      {"Memset (Device)", 8, 1.125, 1.375}};
  const std::string table = kernel_table({"steps 3 to 4", {{1, 1.75}, {2, 2.25}}}, spans);
  EXPECT_THAT(table, HasSubstr("the GPU in steps 3 to 4: busy 75.0 % of 1000.0 ms, idle 250.0 ms, "
                               "of which 125.0 ms before small\n"));
  const auto row = [](std::string_view name, std::string_view figures) {
    return "\n  " + std::string(name) + std::string(64 - name.size(), ' ') + std::string(figures);
  };
  EXPECT_THAT(table, HasSubstr(row("gemm", "       2     500.000    50.0 %") +
                               row("Memset (Device)", "       1     250.000    25.0 %") +
                               row("small", "       1     125.000    12.5 %")));
  EXPECT_EQ(kernel_table({"", {}}, {}), "");
}

TEST(DeviceTrace, TheLongestPauseMayBeAtTheEnd) {
  const std::vector<DeviceSpan> spans{{"long", 7, 0, 0.5},
                                      {"in it", 8, 0.125, 0.25},
                                      {"next", 7, 0.625, 0.75},
                                      {"of another step", 7, 1.5, 2}};
  EXPECT_THAT(
      kernel_table({"step 1", {{0, 1}}}, spans),
      HasSubstr("busy 62.5 % of 1000.0 ms, idle 375.0 ms, of which 250.0 ms before the end\n"));
}

TEST(DeviceTrace, TheTableSumsUpWhatTakesLittle) {
  std::vector<DeviceSpan> spans;
  for (int i = 0; i < 30; ++i) {
    const double begin = i;
    spans.push_back({"kernel" + std::to_string(i), 7, begin, begin + (i < 6 ? 0.25 : 0.5)});
  }
  spans.push_back({"kernel0", 7, 40, 40.125});
  const std::string table = kernel_table({"step 1", {{0, 50}}}, spans);
  EXPECT_THAT(table, HasSubstr("\n  6 others" + std::string(56, ' ') + "       7    1625.000"));
  EXPECT_EQ(std::ranges::count(table, '\n'), 26) << table;
}

}  // namespace
}  // namespace tessera::metrics
