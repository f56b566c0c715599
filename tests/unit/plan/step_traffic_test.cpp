// SPDX-License-Identifier: Apache-2.0
// Counted by hand, and what is not predicted. tests/mpi/train/traffic_test.cpp compares with runs.
#include "tessera/plan/step_traffic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/planned.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::plan {
namespace {

using comm::Call;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two layers whose matrices fill whole vectors on four ranks.
model::DecoderShape small_shape() {
  model::DecoderShape shape;
  shape.dim = 128;
  shape.layers = 2;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 32;
  shape.hidden = 256;
  shape.vocab = 512;
  return shape;
}

config::JobConfig small_job() {
  config::JobConfig job;
  job.training.seq_len = 64;
  job.training.local_batch_size = 2;
  return job;
}

StepTraffic traffic_of(const config::JobConfig& job, const mesh::Degrees& degrees, int world,
                       const model::DecoderShape& shape = small_shape()) {
  const mesh::Layout layout = mesh::Layout::resolve(degrees, world);
  JobPlan plan = test::planned(job, model::spec_of(shape), layout);
  plan.model.shape = shape;
  return step_traffic(plan, mesh::Rank(0));
}

TEST(StepTraffic, OfShardsIsCountedByHand) {
  const std::int64_t table = 512 * 128, block = 4 * 128 * 128 + 3 * 128 * 256 + 2 * 128,
                     head = table + 128;
  // Blocks are gathered for forward and for backward, the embedding too; [norm, output] once.
  const std::int64_t gathered = 2 * (table + 2 * block) + head;
  EXPECT_THAT(
      traffic_of(small_job(), {1, 1, 4, 1, 1}, 4).rows,
      ElementsAre(TrafficRow{"dp_shard", Call::all_gather, 7, gathered / 4 * 2},
                  TrafficRow{"dp_shard", Call::reduce_scatter, 4, (table + 2 * block + head) * 4},
                  TrafficRow{"world", Call::all_reduce, 2, 8 + 8 * (4 + 70)},
                  TrafficRow{"world", Call::all_gather, 1, 8}));
}

TEST(StepTraffic, OneRankExchangesNothing) {
  EXPECT_THAT(traffic_of(small_job(), {1, 1, 1, 1, 1}, 1).rows, IsEmpty());
}

TEST(StepTraffic, WhatDependsOnARunIsNotPredicted) {
  const auto reason = [](void (*change)(config::JobConfig&)) {
    config::JobConfig job = small_job();
    change(job);
    const StepTraffic traffic = traffic_of(job, {2, 1, 1, 1, 1}, 2);
    EXPECT_THAT(traffic.rows, IsEmpty());
    return traffic.unknown;
  };
  EXPECT_THAT(
      reason([](config::JobConfig& job) { job.parallelism.pipeline_parallel_split = "measured"; }),
      HasSubstr("measured"));
  EXPECT_THAT(
      reason([](config::JobConfig& job) { job.parallelism.fsdp_reshard_after_forward = "auto"; }),
      HasSubstr("free memory"));
  EXPECT_THAT(
      reason([](config::JobConfig& job) { job.activation_checkpoint.mode = "memory_budget"; }),
      HasSubstr("measured memory"));
}

TEST(StepTraffic, ExpertsAreCountedIfTheirLoadIsForced) {
  model::DecoderShape shape = model::decoder_flavor("mixtral", "debugmodel");
  mesh::Degrees degrees{1, 1, 4, 1, 1};
  degrees.ep = 2;
  EXPECT_THAT(traffic_of(small_job(), degrees, 4, shape).unknown,
              HasSubstr("debug.moe_force_load_balance"));
  shape.mixture->routing.forced_even = true;
  const StepTraffic traffic = traffic_of(small_job(), degrees, 4, shape);
  EXPECT_THAT(traffic.unknown, IsEmpty());
  EXPECT_TRUE(std::ranges::any_of(traffic.rows, [](const TrafficRow& row) {
    return row.axis == "ep" && row.call == Call::all_to_all_v;
  }));
}

}  // namespace
}  // namespace tessera::plan
