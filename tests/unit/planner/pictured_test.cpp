// SPDX-License-Identifier: Apache-2.0
// What pictures of a planned job are drawn from.
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/planner/price.hpp"
#include "tessera/planner/roofline.hpp"
#include "tessera/planner/scaling.hpp"
#include "tessera/planner/step_memory.hpp"
#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

using Flags = std::vector<std::string>;

Flags joined(Flags a, const Flags& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double most_of(const RankMemory& memory) {
  return std::ranges::max_element(memory.activations, {}, &MemoryPoint::bytes)->bytes;
}

TEST(Pictured, MemoryRisesToThePriceAndFallsToNothing) {
  for (const Flags& mesh :
       {Flags{"--training.global_batch_size", "64"},
        Flags{"--training.local_batch_size", "8", "--parallelism.pipeline_parallel_degree", "4"},
        Flags{"--training.local_batch_size", "8", "--parallelism.pipeline_parallel_degree", "4",
              "--parallelism.pipeline_parallel_schedule", "ZBVZeroBubble"}}) {
    const PlannedJob job({"Pictured", 8, joined({"--model.flavor", "8B"}, mesh)});
    const Workload& work = job.space.own_work();
    const auto ranks = memory_over_step(work, job.machine, job.stack);
    ASSERT_EQ(ranks.size(), work.pipeline.ranks());
    double most = 0;
    for (const RankMemory& memory : ranks) {
      most = std::max(most, memory.constant + most_of(memory));
      EXPECT_NEAR(memory.activations.back().bytes, 0, 1);
      EXPECT_TRUE(std::ranges::is_sorted(memory.activations, {}, &MemoryPoint::seconds));
    }
    EXPECT_DOUBLE_EQ(most, memory_of(work, job.stack).total());
  }
}

/// 1F1B: the first of four ranks holds four microbatches, and the third holds two. Gradients are
/// reduced after each, so that activations alone are drawn.
TEST(Pictured, TheFirstRankHoldsMost) {
  const PlannedJob job(
      {"Pictured",
       8,
       {"--model.flavor", "8B", "--training.local_batch_size", "8",
        "--parallelism.pipeline_parallel_degree", "4", "--parallelism.fsdp_gradient_accumulation",
        "sharded", "--parallelism.pipeline_parallel_first_stage_less_layers", "0",
        "--parallelism.pipeline_parallel_last_stage_less_layers", "0"}});
  const auto ranks = memory_over_step(job.space.own_work(), job.machine, job.stack);
  EXPECT_NEAR(most_of(ranks[schedule::PipelineRank(0)]) / most_of(ranks[schedule::PipelineRank(2)]),
              2, 1e-9);
}

TEST(Pictured, TheTimelineIsThatOfThePrice) {
  for (const Flags& mesh : {Flags{}, Flags{"--parallelism.pipeline_parallel_degree", "4"},
                            Flags{"--parallelism.pipeline_parallel_degree", "4",
                                  "--parallelism.pipeline_parallel_schedule", "Interleaved1F1B"}}) {
    const PlannedJob job({"Pictured", 8,
                          joined({"--model.flavor", "8B", "--training.local_batch_size", "8",
                                  "--training.global_batch_size", "64"},
                                 mesh)});
    const Workload& work = job.space.own_work();
    const schedule::Timeline timeline = step_timeline(work, job.machine, job.stack);
    ASSERT_EQ(timeline.ranks.size(), work.pipeline.ranks());
    const Price price = planner::price(work, job.machine, job.stack);
    EXPECT_LE(timeline.end() * work.pipeline.rounds, price.step_seconds);
    EXPECT_GT(timeline.end() * work.pipeline.rounds, 0.9 * price.step_seconds);
    for (const schedule::PipelineRank rank : work.pipeline.map.each_rank())
      EXPECT_EQ(timeline.ranks[rank].size(),
                2 * work.pipeline.microbatches * work.pipeline.map.stages_of(rank).size());
  }
}

TEST(Pictured, KernelsAreBelowTheRoofs) {
  const PlannedJob job(
      {"Pictured", 8, {"--model.flavor", "8B", "--training.local_batch_size", "2"}});
  const Workload& work = job.space.own_work();
  const std::vector<Kernel> kernels = kernels_of(work, job.machine, job.stack);
  const Roofs roofs = roofs_of(work, job.machine);
  EXPECT_DOUBLE_EQ(roofs.peak, 989e12);
  for (const Kernel& kernel : kernels)
    EXPECT_LE(kernel.flops / kernel.seconds,
              std::min(roofs.ceiling, roofs.memory * kernel.flops / kernel.bytes) * 1.000001)
        << kernel.name;
  // Queries, keys and values: 4096 + 2 x 1024 columns.
  const auto found = std::ranges::find(kernels, "4096 x 6144", &Kernel::name);
  ASSERT_NE(found, kernels.end());
  const double rows = 2 * 8192;
  EXPECT_DOUBLE_EQ(found->flops, 2 * rows * 4096 * 6144);
  EXPECT_DOUBLE_EQ(found->bytes, 2 * (rows * 4096 + 4096 * 6144 + rows * 6144));
}

TEST(Pictured, ScalingHasThePriceOfEachNumberOfGpus) {
  const Flags flags{"--model.name",
                    "llama3",
                    "--model.flavor",
                    "8B",
                    "--training.seq_len",
                    "8192",
                    "--training.local_batch_size",
                    "1",
                    "--training.dataset_path",
                    "x"};
  const auto speed = [&](int gpus, const char* batch) {
    const config::Resolved job =
        config::resolve(joined(flags, {"--training.global_batch_size", batch}));
    const Stack stack = load_stack("tessera");
    return price(workload_of(plan::plan_job(job, gpus, 0), stack), load_machine("h100-700w"), stack)
        .tokens_per_second_per_gpu;
  };
  const Scaling found =
      scaling(config::resolve(joined(flags, {"--training.global_batch_size", "64"})), 8,
              load_machine("h100-700w"), load_stack("tessera"));
  const auto at = [](const std::vector<ScalingPoint>& points, int gpus) {
    const auto point = std::ranges::find(points, gpus, &ScalingPoint::gpus);
    return point == points.end() ? 0 : point->price.tokens_per_second_per_gpu;
  };
  EXPECT_DOUBLE_EQ(at(found.larger_batch, 4), speed(4, "32"));
  EXPECT_DOUBLE_EQ(at(found.larger_batch, 16), speed(16, "128"));
  EXPECT_DOUBLE_EQ(at(found.same_batch, 16), speed(16, "64"));
  EXPECT_DOUBLE_EQ(at(found.same_batch, 8), at(found.larger_batch, 8));
  EXPECT_EQ(at(found.same_batch, 128), 0) << "fewer sequences than ranks";
  EXPECT_EQ(found.larger_batch.back().gpus, 512);
}

}  // namespace
}  // namespace tessera::planner
