// SPDX-License-Identifier: Apache-2.0
// Jobs that cannot fit as they are, and the smallest change of each that makes it fit.
#include <gtest/gtest.h>

#include "tessera/planner/search.hpp"
#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

bool fits_as(const PlannedJob& job, const Variant& variant) {
  return job.space.legal(variant) &&
         fits(memory_of(job.space.workload(variant), job.stack), job.machine);
}

/// Does any variant with `count` of the knobs from `first` on turned fit? Its own enumeration.
bool any_fits(const PlannedJob& job, int count, std::size_t first, const Variant& from) {
  if (count == 0) return fits_as(job, from);
  for (std::size_t i = first; i < kKnobs; ++i)
    for (const int value : job.space.values(kEachKnob[i])) {
      if (value == job.space.own()[kEachKnob[i]]) continue;
      Variant variant = from;
      variant[kEachKnob[i]] = value;
      if (any_fits(job, count - 1, i + 1, variant)) return true;
    }
  return false;
}

struct Planted {
  const char* flavor;
  int gpus;
  const char *seq, *batch, *recompute;
  double memory_gib;
  std::vector<std::string> more = {};
};

// clang-format off
const Planted kPlanted[] = {
    {"8B", 8, "8192", "1", "none", 54},   {"8B", 8, "8192", "1", "none", 48},
    {"8B", 8, "8192", "1", "none", 40},   {"8B", 8, "8192", "1", "none", 32},
    {"8B", 8, "8192", "2", "none", 79},   {"8B", 8, "8192", "4", "none", 79},
    {"8B", 8, "8192", "2", "full", 26},   {"8B", 8, "8192", "32", "full", 79},
    {"8B", 8, "16384", "1", "none", 79},  {"8B", 8, "16384", "1", "selective", 55},
    {"8B", 8, "32768", "1", "selective", 79}, {"8B", 8, "65536", "1", "full", 42},
    {"8B", 4, "8192", "1", "none", 64},   {"8B", 4, "8192", "1", "full", 36},
    {"8B", 2, "8192", "1", "full", 66},   {"8B", 1, "8192", "1", "none", 79},
    {"8B", 1, "8192", "1", "full", 79},   {"8B", 16, "8192", "2", "none", 60},
    {"1B", 8, "8192", "4", "none", 40},   {"1B", 8, "32768", "1", "none", 40},
    {"1B", 1, "8192", "1", "none", 20},   {"3B", 8, "8192", "4", "none", 79},
    {"3B", 2, "8192", "1", "none", 40},   {"3B", 1, "8192", "1", "full", 40},
    {"8B", 8, "8192", "1", "none", 79, {"--parallelism.fsdp_gradient_accumulation", "unsharded",
                                        "--training.global_batch_size", "16"}},
    {"8B", 8, "8192", "1", "selective", 46, {"--parallelism.fsdp_reshard_after_forward", "never"}},
    {"8B", 8, "8192", "1", "full", 79, {"--parallelism.data_parallel_replicate_degree", "8"}},
    {"8B", 8, "8192", "8", "none", 79, {"--parallelism.pipeline_parallel_degree", "4",
                                        "--parallelism.pipeline_parallel_schedule", "GPipe"}},
    {"8B", 1, "8192", "2", "full", 79, {"--parallelism.data_parallel_shard_degree", "1"}},
    {"70B", 64, "8192", "1", "none", 79}, {"70B", 32, "8192", "1", "full", 50},
    {"70B", 16, "8192", "1", "full", 60}, {"70B", 8, "8192", "1", "full", 79},
};
// clang-format on

PlannedJob job_of(const Planted& planted) {
  std::vector<std::string> flags{"--model.flavor",
                                 planted.flavor,
                                 "--training.seq_len",
                                 planted.seq,
                                 "--training.local_batch_size",
                                 planted.batch,
                                 "--activation_checkpoint.mode",
                                 planted.recompute};
  flags.insert(flags.end(), planted.more.begin(), planted.more.end());
  return PlannedJob({"", planted.gpus, flags, "h100-700w", planted.memory_gib});
}

class Remedies : public testing::TestWithParam<int> {};

TEST_P(Remedies, TheChangeFitsAndNoSmallerOneDoes) {
  const PlannedJob job = job_of(kPlanted[GetParam()]);
  ASSERT_FALSE(fits_as(job, job.space.own())) << "it is not impossible";
  const std::optional<Remedy> remedy = smallest_remedy(job.job, job.space, job.machine, job.stack);
  ASSERT_TRUE(remedy);
  const plan::JobPlan plan = plan::plan_job(remedy->option.job, remedy->gpus, 0);
  const Workload work = workload_of(plan, job.stack);
  EXPECT_TRUE(fits(memory_of(work, job.stack), job.machine));
  const int most = remedy->other_gpus || remedy->bfloat16_state ? 3 : remedy->turned - 1;
  for (int count = 0; count <= most; ++count)
    EXPECT_FALSE(any_fits(job, count, 0, job.space.own())) << count << " knobs are enough";
}

TEST(RemedyOfOneGpu, StateInBfloat16ComesBeforeMoreGpus) {
  const auto remedy_in = [](double memory_gib, const std::vector<std::string>& more = {}) {
    const PlannedJob job = job_of({"3B", 1, "8192", "1", "full", memory_gib, more});
    return smallest_remedy(job.job, job.space, job.machine, job.stack);
  };
  const auto moments = remedy_in(48), all = remedy_in(42), more = remedy_in(30);
  ASSERT_TRUE(moments && all && more);
  EXPECT_EQ(moments->gpus, 1);
  EXPECT_EQ(moments->option.changes.front(), "optimizer.moments_dtype = \"bfloat16\"");
  EXPECT_EQ(moments->option.job.job.training.dtype, "float32");
  EXPECT_EQ(all->gpus, 1);
  EXPECT_EQ(all->option.changes.front(), "training.dtype = \"bfloat16\"");
  EXPECT_EQ(all->option.job.job.optimizer.moments_dtype, "auto");
  EXPECT_TRUE(more->other_gpus);
  EXPECT_EQ(more->option.job.job.training.dtype, "float32");

  const std::vector<std::string> wide{"--optimizer.moments_dtype", "float32"};
  const auto both = remedy_in(42, wide);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->option.job.job.training.dtype, "bfloat16");
  EXPECT_EQ(both->option.job.job.optimizer.moments_dtype, "bfloat16");
  const auto rest = remedy_in(42, {"--training.dtype", "bfloat16", wide[0], wide[1]});
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->option.changes.front(), "optimizer.moments_dtype = \"bfloat16\"");

  PlannedJob job = job_of({"3B", 1, "8192", "1", "full", 42});
  job.stack.bfloat16_state = false;
  EXPECT_TRUE(smallest_remedy(job.job, job.space, job.machine, job.stack)->other_gpus);
}

TEST(LegalJobs, KeepAsMuchOfTheMicrobatchAsTheBatchPermits) {
  const auto changes = [](int gpus, std::vector<std::string> flags) {
    plan::Planner planner;
    flags.insert(flags.end(), {"--training.dataset_path", "x"});
    const auto job = legal_on(config::resolve(flags), gpus, planner);
    return job ? job->changes : std::vector<std::string>{"none"};
  };
  const std::vector<std::string> six{"--training.local_batch_size", "6",
                                     "--training.global_batch_size", "16"};
  EXPECT_THAT(changes(4, six), testing::ElementsAre("training.local_batch_size = 4"));
  EXPECT_THAT(changes(1, six), testing::ElementsAre("training.local_batch_size = 4"));
  EXPECT_THAT(changes(3, six), testing::ElementsAre("none")) << "three ranks do not divide 16";
  EXPECT_THAT(changes(32, six), testing::ElementsAre("parallelism.tensor_parallel_degree = 2",
                                                     "training.local_batch_size = 1"));
  EXPECT_THAT(changes(4, {"--training.global_batch_size", "32"}), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Planted, Remedies,
                         testing::Range(0, static_cast<int>(std::size(kPlanted))));

}  // namespace
}  // namespace tessera::planner
