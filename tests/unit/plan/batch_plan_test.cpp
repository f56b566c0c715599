// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/batch_plan.hpp"

#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/plan/model_shape.hpp"

namespace tessera::plan {
namespace {

config::JobConfig job(std::int64_t local, std::int64_t global, const char* schedule = "1F1B") {
  config::JobConfig job;
  job.training.local_batch_size = local;
  job.training.global_batch_size = global;
  job.parallelism.pipeline_parallel_schedule = schedule;
  return job;
}

TEST(BatchPlan, AStepCanBeCounted) {
  const auto refused = [](std::int64_t global, std::int64_t local, std::int64_t ranks,
                          std::int64_t seq_len) {
    return !tessera::test::error_if_any(ExitCode::usage, [&] {
              BatchPlan::require_countable(global, local, ranks, seq_len);
            }).empty();
  };
  const std::int64_t most = std::int64_t{1} << 62;
  EXPECT_FALSE(refused(-1, 2, 8192, 1 << 20));
  EXPECT_FALSE(refused(1 << 30, 2, 8192, 4096));
  EXPECT_TRUE(refused(-1, most, 1, 32));
  EXPECT_TRUE(refused(-1, most, 4, 32));
  EXPECT_TRUE(refused(-1, 1 << 30, 2, 32));
  EXPECT_TRUE(refused(std::int64_t{1} << 33, 2, 1, 32));
  EXPECT_TRUE(refused(-1, 8, 1, most));
}

TEST(BatchPlan, WithoutPipelineAMicrobatchIsALocalBatch) {
  const BatchPlan plan = BatchPlan::make(job(4, 32), mesh::Layout::resolve({1, 2, 2, 1, 1}, 4));
  EXPECT_EQ(plan.rows, 8);
  EXPECT_EQ(plan.microbatch_rows, 4);
  EXPECT_EQ(plan.microbatches_a_step(), 2);
}

TEST(BatchPlan, AccumulationStreamsThrough1F1BAndIsSeparateRoundsOfGPipe) {
  const mesh::Layout layout = mesh::Layout::resolve({2, 1, 1, 1, 1}, 2);
  const BatchPlan streamed = BatchPlan::make(job(4, 8), layout),
                  rounds = BatchPlan::make(job(4, 8, "GPipe"), layout);
  EXPECT_EQ(streamed.rounds, 1);
  EXPECT_EQ(streamed.microbatches, 8);
  EXPECT_EQ(rounds.rounds, 2);
  EXPECT_EQ(rounds.microbatches, 4);
}

TEST(BatchPlan, IsOneLocalBatchForEachRankByDefault) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 2, 1, 1}, 2);
  EXPECT_EQ(BatchPlan::make(job(3, -1), layout).global_batch, 6);
}

TEST(BatchPlan, CutsSequencesOverContextParallelRanks) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 4, 1}, 4);
  config::JobConfig uneven = job(1, -1);
  uneven.training.seq_len = 8;
  EXPECT_EQ(BatchPlan::make(uneven, layout).cut.ranges(0).size(), 2u);
  uneven.training.seq_len = 4;
  uneven.parallelism.context_parallel_load_balancer.reset();
  EXPECT_EQ(BatchPlan::make(uneven, layout).cut.positions(), 1);
}

TEST(BatchPlan, PinsWhatTheLoadersSay) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  config::JobConfig pinned = job(1, -1);
  EXPECT_FALSE(BatchPlan::make(pinned, layout).pinned);
  pinned.training.dataloader.pin_memory = true;
  EXPECT_TRUE(BatchPlan::make(pinned, layout).pinned);
  EXPECT_FALSE(BatchPlan::of_validation(pinned, layout).pinned);
  pinned.validation.dataloader.pin_memory = true;
  EXPECT_TRUE(BatchPlan::of_validation(pinned, layout).pinned);
}

TEST(BatchPlan, DocumentsAreMaskedByKey) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  config::JobConfig packed = job(1, -1);
  EXPECT_FALSE(BatchPlan::make(packed, layout).documents);
  packed.training.document_mask = true;
  EXPECT_TRUE(BatchPlan::make(packed, layout).documents);
}

}  // namespace
}  // namespace tessera::plan
