// SPDX-License-Identifier: Apache-2.0
// What a job is compared with: FSDP alone on its GPUs, and its mesh on fewer of them.
#include "tessera/planner/scaling.hpp"

#include <gtest/gtest.h>

#include "planned_job.hpp"

namespace tessera::planner {
namespace {

const JobCase fsdp{
    "Fsdp", 64, {"--model.flavor", "8B", "--parallelism.fsdp_reshard_after_forward", "always"}};
const JobCase tensor_parallel{"TensorParallel",
                              64,
                              {"--model.flavor", "8B", "--parallelism.tensor_parallel_degree", "8",
                               "--training.global_batch_size", "64"}};

Price own_price(const PlannedJob& job) {
  return price(job.space.own_work(), job.machine, job.stack);
}
std::optional<Price> plain(const PlannedJob& job) {
  return plain_fsdp(job.job, job.space.own_work().gpus, job.machine, job.stack);
}

TEST(PlainFsdp, IsTheJobWhereItHasNothingElse) {
  const PlannedJob job(fsdp);
  ASSERT_TRUE(plain(job));
  EXPECT_DOUBLE_EQ(plain(job)->step_seconds, own_price(job).step_seconds);
  EXPECT_DOUBLE_EQ(plain(job)->memory.total(), own_price(job).memory.total());
}

TEST(PlainFsdp, TrainsTheSameBatchWithoutTheMesh) {
  const PlannedJob job(tensor_parallel);
  ASSERT_TRUE(plain(job));
  EXPECT_EQ(plain(job)->exposed.tp, 0);
  EXPECT_GT(plain(job)->tokens_per_second_per_gpu, own_price(job).tokens_per_second_per_gpu);
}

TEST(PlainFsdp, HasTheMicrobatchesOfAPipeline) {
  const auto memory = [&](const char* rows) {
    JobCase piped = fsdp;
    piped.gpus = 8;
    piped.flags.insert(piped.flags.end(),
                       {"--parallelism.pipeline_parallel_degree", "2",
                        "--training.global_batch_size", "64", "--training.local_batch_size", rows});
    return plain(PlannedJob(piped))->memory.total();
  };
  EXPECT_DOUBLE_EQ(memory("4"), memory("16"));
}

TEST(PlainFsdp, NeedsASequenceForEachGpu) {
  JobCase small = tensor_parallel;
  small.flags.back() = "32";
  small.flags.insert(small.flags.end(), {"--training.local_batch_size", "4"});
  EXPECT_FALSE(plain(PlannedJob(small)));
}

TEST(OnFewestGpus, HasTheMeshAndABatchThatIsAsMuchSmaller) {
  const PlannedJob job(tensor_parallel);
  const auto fewest = on_fewest_gpus(job.job, 64, job.machine, job.stack);
  ASSERT_TRUE(fewest);
  EXPECT_EQ(fewest->gpus, 8);
  EXPECT_GT(fewest->price.tokens_per_second_per_gpu, own_price(job).tokens_per_second_per_gpu);
  EXPECT_FALSE(on_fewest_gpus(job.job, 8, job.machine, job.stack));
}

}  // namespace
}  // namespace tessera::planner
