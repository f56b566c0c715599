// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/fused_loss.hpp"

#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/plan/memory_need.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

constexpr const char* kFusedKey = "--training.fused_linear_cross_entropy";

JobPlan fused_plan(config::Strings flags, int ranks = 1) {
  flags.insert(flags.end(), {"--training.dataset_path", "x", "--model.flavor", "8B"});
  return plan_job(config::resolve(flags), ranks, 0);
}

TEST(FusedLoss, AChunkAndWhatBelongsToItsRowsAreAnEighth) {
  for (const std::int64_t tokens : {9, 10, 100, 1000, 8192}) {
    const std::int64_t chunk = loss_chunk_tokens(FusedLoss::always, {tokens, 1000, 100, 4});
    EXPECT_GE(chunk, 1);
    EXPECT_LE(8 * chunk, tokens);
  }
  EXPECT_EQ(loss_chunk_tokens(FusedLoss::always, {1, 1000, 100, 4}), 1);
  EXPECT_EQ(loss_chunk_tokens(FusedLoss::never, {8192, 128256, 4096, 2}), 0);
}

TEST(FusedLoss, IsAutomaticWhereLogitsAreLargerThanWhatTakesTheirPlace) {
  const auto automatic = [](const OutputShape& shape) {
    return loss_chunk_tokens(FusedLoss::automatic, shape) > 0;
  };
  EXPECT_TRUE(automatic({65536, 128256, 4096, 2}));
  EXPECT_FALSE(automatic({4096, 128256, 4096, 2})) << "the weight's gradient is larger";
  EXPECT_FALSE(automatic({1024, 2048, 256, 4})) << "8 MiB of logits";
}

TEST(FusedLoss, IsOffByDefault) { EXPECT_EQ(loss_chunk_tokens(fused_plan({})), 0); }

TEST(FusedLoss, KeepsTheLogitsOfTensorParallelRanksApart) {
  const config::Strings whole{"--parallelism.disable_loss_parallel",
                              "--parallelism.tensor_parallel_degree", "2"};
  const auto with = [](const char* how, config::Strings flags, int ranks) {
    flags.insert(flags.end(), {kFusedKey, how});
    return fused_plan(flags, ranks);
  };
  EXPECT_GT(loss_chunk_tokens(with("always", {"--parallelism.tensor_parallel_degree", "2"}, 2)), 0);
  EXPECT_EQ(loss_chunk_tokens(with("auto", whole, 2)), 0);
  EXPECT_GT(loss_chunk_tokens(with("always", {"--parallelism.disable_loss_parallel"}, 1)), 0);
  EXPECT_THAT(error_of(ExitCode::usage, [&] { with("always", whole, 2); }),
              HasSubstr("fused_linear_cross_entropy leaves logits cut"));
}

TEST(FusedLoss, NeedsTheMemoryOfAChunk) {
  const auto activations = [](const char* how) {
    return memory_need(fused_plan({kFusedKey, how}), schedule::PipelineRank(0))->activations;
  };
  const std::int64_t logits = 8LL * 2048 * 128256 * 2;
  EXPECT_EQ(activations("never") - activations("always"), logits - 1024LL * 128256 * 2);
}

}  // namespace
}  // namespace tessera::plan
