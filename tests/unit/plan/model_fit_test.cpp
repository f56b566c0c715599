// SPDX-License-Identifier: Apache-2.0
// Models that do not fit their mesh are refused before anything is allocated, with what would do.
#include "tessera/plan/model_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/plan/model_shape.hpp"
#include "tessera/plan/stage_ranges.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_if_any;
using testing::HasSubstr;

/// What the rules say of a flavor on a mesh.
std::string refusal(const char* family, const char* flavor, const mesh::Degrees& degrees, int world,
                    bool sequence_parallel = true, std::int64_t seq_len = 64) {
  config::JobConfig job;
  job.training.seq_len = seq_len;
  job.training.local_batch_size = 1;
  const mesh::Layout layout = mesh::Layout::resolve(degrees, world);
  const model::ModelSpec model = model::spec_of(model::decoder_flavor(family, flavor));
  return error_if_any(ExitCode::usage, [&] {
    check_tensor_parallel_fits(model, layout.degree(mesh::Axis::tp));
    check_experts_fit(model, layout);
    check_routed_tokens(model, layout, BatchPlan::make(job, layout), sequence_parallel);
  });
}

mesh::Degrees experts_on(int dp, int tp, int ep, int etp = 1) {
  mesh::Degrees degrees{1, 1, dp, 1, tp};
  degrees.ep = ep;
  degrees.etp = etp;
  return degrees;
}

TEST(ModelFits, ExpertsAreSharedOutEvenly) {
  EXPECT_EQ(refusal("mixtral", "debugmodel", experts_on(8, 1, 8), 8), "");
  EXPECT_EQ(refusal("mixtral", "debugmodel", experts_on(4, 2, 8), 8), "");
  EXPECT_THAT(
      refusal("mixtral", "debugmodel", experts_on(3, 1, 3), 3),
      HasSubstr("experts 8 cannot be shared by expert_parallel_degree 3; choose a divisor of 8"));
  EXPECT_THAT(refusal("llama3", "debugmodel", experts_on(2, 1, 2), 2), HasSubstr("has no experts"));
}

TEST(ModelFits, RanksThatShareAnExpert) {
  EXPECT_EQ(refusal("deepseek_v3", "debugmodel", experts_on(2, 2, 2, 2), 4), "");
  EXPECT_EQ(refusal("gpt_oss", "debugmodel", experts_on(1, 2, 1, 2), 2), "");
}

TEST(ModelFits, TokensAreRoutedApart) {
  EXPECT_EQ(refusal("mixtral", "debugmodel", experts_on(1, 2, 1), 2, false), "");
  EXPECT_EQ(refusal("mixtral", "debugmodel", experts_on(1, 2, 1, 2), 2, false, 63), "");
  EXPECT_EQ(refusal("llama3", "debugmodel", experts_on(1, 2, 1), 2, false, 63), "");
  EXPECT_THAT(refusal("mixtral", "debugmodel", experts_on(1, 2, 1), 2, false, 63),
              HasSubstr("each rank routes its own"));
}

TEST(ModelShape, TakesWhatTheJobSaysOfExperts) {
  config::JobConfig job;
  job.model.name = "mixtral";
  EXPECT_FALSE(decoder_shape_of(job, 0).mixture->routing.forced_even);
  job.debug.moe_force_load_balance = true;
  EXPECT_TRUE(decoder_shape_of(job, 0).mixture->routing.forced_even);
}

TEST(StageRanges, AreCutWhereModulesSay) {
  const model::ModelSpec model = model::spec_of(model::decoder_flavor("llama3", "debugmodel"));
  config::JobConfig job;
  job.parallelism.module_fqns_per_model_part = {
      {"tok_embeddings", "layers.0"},
      {"layers.1", "layers.2", "layers.3", "layers.4", "layers.5", "norm", "output"}};
  const auto ranges = stage_ranges_of(job, model, 2);
  ASSERT_TRUE(ranges);
  EXPECT_EQ((*ranges)[schedule::StageIndex(1)].begin, model.units[2].begin);
  job.parallelism.module_fqns_per_model_part.reset();
  job.parallelism.pipeline_parallel_split_points = {"layer.4"};  // as guides spell it
  EXPECT_EQ((*stage_ranges_of(job, model, 2))[schedule::StageIndex(1)].begin, model.units[5].begin);
}

}  // namespace
}  // namespace tessera::plan
