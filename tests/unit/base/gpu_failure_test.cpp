// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/gpu_failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(GpuFailure, NamesTheLastLaunches) {
  EXPECT_THAT(
      gpu_failure("an illegal memory access was encountered", "cudaEventRecord"),
      HasSubstr(
          "failed: an illegal memory access was encountered (seen by cudaEventRecord); look for"));
  for (const char* kernel : {"rope", "adamw", "a", "b", "c", "d", "e", "f", "rms_norm", "swiglu"})
    note_launch(kernel);
  EXPECT_EQ(last_launches(), "a, b, c, d, e, f, rms_norm, swiglu");
  EXPECT_THAT(
      gpu_failure("unknown error", "LibTorch"),
      HasSubstr(
          "(seen by LibTorch); the last kernels that this rank launched were a, b, c, d, e, f, "
          "rms_norm, swiglu; look for"));
}

TEST(GpuFailure, IsToldFromMistakes) {
  for (const int code : {214, 220, 226, 700, 710, 719, 721, 999})
    EXPECT_TRUE(is_gpu_failure(code)) << code;
  for (const int code : {0, 1, 2, 46, 400, 600, 720, 801})
    EXPECT_FALSE(is_gpu_failure(code)) << code;
}

TEST(GpuFailure, IsFoundInLibTorchsWords) {
  const std::runtime_error gone(
      "CUDA error: unspecified launch failure\nSearch for `cudaErrorLaunchFailure' in ...");
  EXPECT_THAT(gpu_failure(gone),
              HasSubstr("failed: unspecified launch failure (seen by LibTorch)"));
  for (const char* words : {"uncorrectable NVLink error detected during the execution",
                            "Invalid access of peer GPU memory over nvlink or a hardware error",
                            "operation not supported on global/shared address space",
                            "tensor memory not completely freed"})
    EXPECT_THAT(gpu_failure(std::runtime_error(std::string("CUDA error: ") + words + "\nSearch")),
                HasSubstr(words));
  EXPECT_EQ(gpu_failure(std::runtime_error("CUDA error: invalid argument\nSearch for ...")), "");
  EXPECT_EQ(gpu_failure(std::runtime_error("unknown error")), "");
}

}  // namespace
}  // namespace tessera
