// SPDX-License-Identifier: Apache-2.0
// On a GPU of which the allocator may take 64 MiB: PYTORCH_CUDA_ALLOC_CONF says so.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory_report.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"

namespace tessera::test {
namespace {

std::string warning_of(train::AllocationRetries& retries, at::Device device) {
  testing::internal::CaptureStderr();
  retries.warn_once(world(), device);
  return testing::internal::GetCapturedStderr();
}

TEST(AllocationRetries, DISABLED_AreWarnedAboutOnce) {
  const Place place(world());
  const auto bytes = at::TensorOptions(at::kByte).device(place.device);
  train::AllocationRetries retries;
  at::empty({40 << 20}, bytes);  // unused from now on, and kept
  EXPECT_EQ(warning_of(retries, place.device), "");
  at::empty({50 << 20}, bytes);
  EXPECT_THAT(
      warning_of(retries, place.device),
      testing::HasSubstr("the GPU's memory is used up; an allocation succeeded only after"));
  EXPECT_EQ(warning_of(retries, place.device), "");
}

}  // namespace
}  // namespace tessera::test
