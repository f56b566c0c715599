// SPDX-License-Identifier: Apache-2.0
// What LibTorch is told about GPUs can be looked up without one.
#include "tessera/train/arithmetic.hpp"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/error_of.hpp"
#include "tessera/base/deterministic_form.hpp"
#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

const at::Device kGpu(at::kCUDA, 0);

/// LibTorch's settings are those of the process.
class Arithmetic : public testing::Test {
 protected:
  void SetUp() override { unsetenv("CUBLAS_WORKSPACE_CONFIG"); }
  void TearDown() override {
    unsetenv("CUBLAS_WORKSPACE_CONFIG");
    with_arithmetic({}, kGpu);
    context.setDeterministicAlgorithms(false, false);
    context.setDeterministicFillUninitializedMemory(true);
    context.setDeterministicCuDNN(false);
  }
  at::Context& context = at::globalContext();
  plan::ArithmeticPlan plan;
};

TEST_F(Arithmetic, DefaultsArePyTorchs) {
  context.setAllowTF32CuBLAS(true);
  context.setAllowBF16ReductionCuBLAS(false);
  EXPECT_EQ(with_arithmetic(plan, kGpu), kGpu);
  EXPECT_FALSE(context.allowTF32CuBLAS());
  EXPECT_EQ(context.allowBF16ReductionCuBLAS(),
            at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK);
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_EQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), nullptr);
}

TEST_F(Arithmetic, KeysAreObeyed) {
  plan.allow_tf32 = true;
  plan.allow_bf16_reduced_precision_reduction = false;
  with_arithmetic(plan, kGpu);
  EXPECT_TRUE(context.allowTF32CuBLAS());
  EXPECT_TRUE(context.allowTF32CuDNN());
  EXPECT_NE(context.allowBF16ReductionCuBLAS(),
            at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK);
}

TEST_F(Arithmetic, DeterministicModeHoldsForAllLibraries) {
  plan.deterministic = true;
  with_arithmetic(plan, kGpu);
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_FALSE(context.benchmarkCuDNN());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  plan.deterministic_warn_only = true;
  with_arithmetic(plan, kGpu);
  EXPECT_TRUE(context.deterministicAlgorithmsWarnOnly());
}

TEST_F(Arithmetic, WorkspacesThatAreNotDeterministicAreRefused) {
  plan.deterministic = true;
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  with_arithmetic(plan, kGpu);
  setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0", 1);
  const std::string error = error_of(ExitCode::environment, [&] { with_arithmetic(plan, kGpu); });
  EXPECT_THAT(error, HasSubstr("CUBLAS_WORKSPACE_CONFIG is \":0:0\""));
}

TEST_F(Arithmetic, OperationsWithoutADeterministicFormAreNamed) {
  plan.deterministic = true;
  with_arithmetic(plan, kGpu);
  try {
    at::Context::alertNotDeterministic("histc_cuda");
    ADD_FAILURE() << "no error";
  } catch (const std::exception& error) {
    EXPECT_THAT(without_deterministic_form(error),
                testing::StartsWith(
                    "histc_cuda has no form that always gives the same bits on this GPU, and "
                    "debug.deterministic = true; set"));
  }
  EXPECT_EQ(without_deterministic_form(std::runtime_error("out of memory")), "");
}

TEST_F(Arithmetic, OnTheHostNothingChanges) {
  plan.allow_tf32 = true;
  plan.deterministic = true;
  testing::internal::CaptureStderr();
  with_arithmetic(plan, at::kCPU);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(HasSubstr("training.allow_tf32 has no effect: the job trains on the host"),
                     testing::Not(HasSubstr("reduction"))));
  EXPECT_FALSE(context.allowTF32CuBLAS());
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_FALSE(ordered_sums_of(plan, at::kCPU));
}

}  // namespace
}  // namespace tessera::train
