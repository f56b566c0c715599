// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/flops.hpp"
#include "tessera/metrics/core_speed.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::metrics {
namespace {

// Llama 3 8B as published: 8,030,261,248 parameters, vocabulary 128,256, dim 4096, 32 layers of 32
// heads of 128.
constexpr ModelSize llama_8b{.parameters = 8'030'261'248,
                             .embedding_parameters = 128'256LL * 4096,
                             .layers = 32,
                             .heads = 32,
                             .head_dims = 256,
                             .seq_tokens = 8192};

TEST(FlopsPerToken, OfLlama8bByHand) {
  const FlopsPerToken flops = flops_per_token(llama_8b);
  const double matmul = 6.0 * 7'504'924'672.0;
  const double attention = 12.0 * 32 * 32 * 128 * 8192;
  EXPECT_DOUBLE_EQ(flops.full, matmul + attention);
  EXPECT_DOUBLE_EQ(flops.causal, matmul + attention / 2);
  EXPECT_NEAR(flops.full / flops.causal, 1.12, 0.01) << "numerics.md: the two differ by 12 % at 8B";
}

TEST(FlopsPerToken, DoesNotOverflowAt405b) {
  const FlopsPerToken flops = flops_per_token({.parameters = 405'853'388'800,
                                               .embedding_parameters = 128'256LL * 16384,
                                               .layers = 126,
                                               .heads = 128,
                                               .head_dims = 256,
                                               .seq_tokens = 1'048'576});
  EXPECT_NEAR(flops.full,
              6.0 * (405'853'388'800.0 - 2'101'346'304.0) + 6.0 * 126 * 128 * 256 * 1'048'576.0,
              1e3);
}

TEST(DevicePeak, KnowsTheNamesThatDriversGive) {
  const auto bf16 = [](const char* name) {
    return device_peak(name, DType::bf16).value_or(Peak{}).flops;
  };
  EXPECT_DOUBLE_EQ(bf16("NVIDIA H100 80GB HBM3"), 989.5e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA H100 PCIe"), 756.5e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA H100 NVL"), 835.5e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA H200"), 989.5e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA GH200 480GB"), 989.5e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA H20"), 148e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA A10"), 125e12) << "no part of A100";
  EXPECT_DOUBLE_EQ(bf16("NVIDIA B200"), 2250e12);
  EXPECT_DOUBLE_EQ(bf16("NVIDIA GB200"), 2500e12);
  EXPECT_DOUBLE_EQ(bf16("AMD Instinct MI300X"), 1307.4e12);
  EXPECT_DOUBLE_EQ(bf16("AMD Instinct MI250X"), 191.5e12);
}

TEST(DevicePeak, DependsOnTheTypeAndSaysWhatItIs) {
  EXPECT_DOUBLE_EQ(device_peak("NVIDIA H200", DType::f8e4m3)->flops, 1979e12);
  EXPECT_DOUBLE_EQ(device_peak("NVIDIA H200", DType::f32)->flops, 66.9e12);
  EXPECT_EQ(device_peak("NVIDIA H200", DType::bf16)->source, "data sheet of H200, dense bf16");
  for (const char* part :
       {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA GeForce RTX 4090 Laptop GPU"})
    EXPECT_FALSE(device_peak(part, DType::bf16)) << part;
}

TEST(DevicePeak, IsEmptyForWhatItDoesNotKnow) {
  EXPECT_FALSE(device_peak("NVIDIA A100-SXM4-80GB", DType::f8e4m3)) << "has no float8 unit";
  EXPECT_FALSE(device_peak("NVIDIA H200", DType::i32));
  EXPECT_FALSE(device_peak("Voodoo 2", DType::bf16));
  EXPECT_FALSE(device_peak("", DType::bf16));
}

constexpr std::string_view two_cores_four_threads = R"(processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
cpu MHz		: 2000.000
physical id	: 0
core id		: 0
flags		: fpu sse2 avx fma avx2 avx512f avx512_bf16

processor	: 1
cpu MHz		: 800.000
physical id	: 0
core id		: 1
processor	: 2
physical id	: 0
core id		: 0
processor	: 3
physical id	: 0
core id		: 1
)";

std::string with(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(HostPeak, CountsCoresNotThreads) {
  EXPECT_EQ(physical_cores(two_cores_four_threads), 2);
  EXPECT_EQ(physical_cores("processor : 0\nprocessor : 1\nFeatures : asimd\n"), 2)
      << "Arm states no core ids";
  EXPECT_EQ(physical_cores("processor : 0\ncore id : 0\nphysical id : 0\n"), 1);
  EXPECT_EQ(physical_cores(""), 1);
}

TEST(HostPeak, IsCoresTimesClockTimesWidth) {
  const Peak peak = host_peak_of(two_cores_four_threads, DType::f32, 2);
  EXPECT_DOUBLE_EQ(peak.flops, 2 * 2e9 * 64);
  EXPECT_EQ(peak.source, "estimate: 2 cores x 2.00 GHz x 64 f32 FLOP/cycle of AVX-512");
  EXPECT_DOUBLE_EQ(host_peak_of(two_cores_four_threads, DType::f32, 0.25, 4e9).flops,
                   0.25 * 4e9 * 64);
  EXPECT_DOUBLE_EQ(host_peak_of(two_cores_four_threads, DType::f64, 1).flops, 2e9 * 32);
  EXPECT_DOUBLE_EQ(host_peak_of(two_cores_four_threads, DType::bf16, 1).flops, 2e9 * 128);
}

TEST(HostPeak, TakesTheWidestUnitThatTheFlagsName) {
  const std::string text(two_cores_four_threads);
  const auto per_cycle = [](const std::string& cpuinfo, DType dtype) {
    return host_peak_of(cpuinfo, dtype, 1).flops / 2e9;
  };
  EXPECT_DOUBLE_EQ(per_cycle(with(text, "avx512_bf16", "amx_bf16"), DType::bf16), 1024);
  EXPECT_DOUBLE_EQ(per_cycle(with(text, " avx512_bf16", ""), DType::bf16), 64) << "float32's rate";
  EXPECT_DOUBLE_EQ(per_cycle(with(text, " avx512f avx512_bf16", ""), DType::f32), 32);
  EXPECT_DOUBLE_EQ(per_cycle(with(text, "avx fma avx2 avx512f avx512_bf16", "avx5fma"), DType::f32),
                   8)
      << "whole words only";
  const std::string amd = with(text, "GenuineIntel", "AuthenticAMD");
  const std::string zen4 = with(amd, "cpu family\t: 6", "cpu family\t: 25");
  EXPECT_DOUBLE_EQ(per_cycle(zen4, DType::f32), 32) << "512 bits in two halves";
}

TEST(HostPeak, IsUnknownWithoutFigures) {
  EXPECT_EQ(host_peak_of("", DType::f32, 2).flops, 0);
  EXPECT_EQ(host_peak_of(two_cores_four_threads, DType::i8, 2).flops, 0);
}

TEST(HostPeak, OfThisMachineIsPlausibleAndShared) {
  const Peak alone = host_peak(DType::f32, 1);
  const Peak shared = host_peak(DType::f32, 1024);
  EXPECT_GT(alone.flops, 1e9) << alone.source;
  EXPECT_LT(alone.flops, 1e14) << alone.source;
  EXPECT_LT(shared.flops, alone.flops) << shared.source;
}

TEST(CoreSpeed, IsPlausible) {
  for (const int threads : {0, 1, 2, 1 << 20}) {
    const double rate = copy_rate(threads);
    EXPECT_GT(rate, 1e7);
    EXPECT_LT(rate, 1e13);
  }
  const double clock_hz = core_clock_hz(VectorLoad::none);
  EXPECT_GE(clock_hz, 0);  // 0: other kinds of processors
  EXPECT_LT(clock_hz, 1e10);
}

TEST(Mfu, IsAFraction) {
  EXPECT_DOUBLE_EQ(mfu(1000, 2e9, {4e12, ""}), 0.5);
  EXPECT_TRUE(std::isnan(mfu(1000, 2e9, {})));
}

}  // namespace
}  // namespace tessera::metrics
