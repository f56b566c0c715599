// SPDX-License-Identifier: Apache-2.0
// Hints of a job: the keys that a run may name at its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {
namespace {

JobPlan plan_of(config::Strings flags, int ranks) {
  flags.insert(flags.end(), {"--training.dataset_path", "x"});
  return plan_job(config::resolve(flags), ranks, 0);
}

std::string hint(const config::Strings& flags, int ranks, std::string_view row) {
  for (const metrics::TimeHint& each : plan_of(flags, ranks).run.time_hints)
    if (each.row == row) return each.flag;
  return "";
}

const config::Strings kTp{"--parallelism.tensor_parallel_degree", "2"},
    kPp{"--parallelism.pipeline_parallel_degree", "2"},
    kCp{"--parallelism.context_parallel_degree", "2"}, kFsdp{}, kSaves{"--checkpoint.enable"};

config::Strings with(config::Strings flags, const config::Strings& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

config::Strings flags_of(const std::string& flag) {
  const std::size_t space = flag.find(' ');
  if (space == std::string::npos) return {flag};
  return {flag.substr(0, space), flag.substr(space + 1)};
}

TEST(TimeHints, NameTheKeyOfAnAxis) {
  EXPECT_EQ(hint(kTp, 2, "waiting in tp"), "--parallelism.enable_async_tensor_parallel");
  EXPECT_EQ(hint(kPp, 2, "waiting in pp"), "--parallelism.pipeline_parallel_schedule ZBH1");
  EXPECT_EQ(hint(kCp, 2, "waiting in cp"), "--parallelism.context_parallel_rotate_method ring");
  EXPECT_EQ(hint(kFsdp, 2, "waiting in dp_shard"),
            "--parallelism.fsdp_reshard_after_forward never");
  EXPECT_EQ(hint(kSaves, 1, "checkpoint"), "--checkpoint.async_mode async");
}

TEST(TimeHints, NameNoKeyThatTheJobHasSet) {
  EXPECT_EQ(hint(with(kTp, {"--parallelism.enable_async_tensor_parallel"}), 2, "waiting in tp"),
            "");
  EXPECT_EQ(
      hint(with(kTp, {"--parallelism.enable_async_tensor_parallel=false"}), 2, "waiting in tp"),
      "");
  EXPECT_EQ(
      hint(with(kPp, {"--parallelism.pipeline_parallel_schedule", "1F1B"}), 2, "waiting in pp"),
      "");
  EXPECT_EQ(hint(with(kFsdp, {"--parallelism.fsdp_reshard_after_forward", "always",
                              "--training.global_batch_size", "32"}),
                 2, "waiting in dp_shard"),
            "--parallelism.fsdp_gradient_accumulation unsharded")
      << "the next one that acts";
}

TEST(TimeHints, NameNoKeyThatDoesNotAct) {
  EXPECT_EQ(hint(with(kTp, {"--parallelism.disable_sequence_parallel"}), 2, "waiting in tp"), "");
  EXPECT_EQ(hint(kPp, 4, "waiting in dp_shard"), "") << "pipelines keep their weights";
  EXPECT_EQ(hint({}, 1, "checkpoint"), "") << "it saves nothing";
}

/// With each flag that a job gets, it still has a plan, and no hint for that row names it again.
TEST(TimeHints, AJobStartsWithTheKeyItIsTold) {
  for (const auto& [job, ranks] :
       std::vector<std::pair<config::Strings, int>>{{{}, 1},
                                                    {kTp, 2},
                                                    {kPp, 2},
                                                    {kCp, 4},
                                                    {with(with(kTp, kPp), kSaves), 8},
                                                    {with(kPp, {"--debug.deterministic"}), 4},
                                                    {with(kTp, {"--debug.deterministic"}), 4}})
    for (const metrics::TimeHint& each : plan_of(job, ranks).run.time_hints) {
      const config::Strings more = with(job, flags_of(each.flag));
      EXPECT_NE(hint(more, ranks, each.row), each.flag);
    }
}

}  // namespace
}  // namespace tessera::plan
