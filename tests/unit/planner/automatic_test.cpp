// SPDX-License-Identifier: Apache-2.0
// What the planner chooses is compared with the price of every job that it might have chosen.
#include "tessera/planner/automatic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tessera/config/option_table.hpp"
#include "tessera/planner/price.hpp"
#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Flags = std::vector<std::string>;

Flags operator+(Flags a, const Flags& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Flags of_llama(const char* flavor = "8B") {
  return {"--model.name",       "llama3", "--model.flavor",          flavor,
          "--training.seq_len", "8192",   "--training.dataset_path", "x"};
}

config::Reading chosen(const Flags& flags, int ranks = 8, double memory_gib = 0) {
  config::Reading job = config::read_job(flags);
  Machine machine = load_machine("h100-700w");
  if (memory_gib > 0) machine.memory_bytes = memory_gib * kGiB;
  choose_values(job, ranks, 0, machine, load_stack("tessera"));
  return job;
}

/// Of the first problem.
std::string complaint(const Flags& flags, int ranks = 8, double memory_gib = 0) {
  const config::Reading job = chosen(flags, ranks, memory_gib);
  return job.problems.empty() ? "" : job.problems.front().text;
}

Price price_of(const config::Resolved& job, int ranks) {
  const Stack stack = load_stack("tessera");
  return price(workload_of(plan::plan_job(job, ranks, 0), stack), load_machine("h100-700w"), stack);
}

/// The least step of the jobs that these flags make of `common`, if they are legal and fit.
double least_seconds(const Flags& common, const std::vector<Flags>& variants, int ranks = 8) {
  double least = std::numeric_limits<double>::infinity();
  for (const Flags& variant : variants) try {
      const Price it = price_of(config::resolve(common + variant), ranks);
      if (it.fits) least = std::min(least, it.step_seconds);
    } catch (const Error&) {  // not legal
    }
  return least;
}

/// All that activation_checkpoint.mode = "auto" may become.
std::vector<Flags> recomputations() {
  std::vector<Flags> all{{"--activation_checkpoint.mode", "none"},
                         {"--activation_checkpoint.mode", "full"}};
  for (const char* option : {"op", "2", "3", "4"})
    all.push_back({"--activation_checkpoint.mode", "selective",
                   "--activation_checkpoint.selective_ac_option", option});
  return all;
}

TEST(Automatic, RecomputesNoMoreThanMemoryAsks) {
  const Flags common =
      of_llama() + Flags{"--training.local_batch_size", "2", "--training.global_batch_size", "64"};
  const config::Reading job = chosen(common + Flags{"--activation_checkpoint.mode", "auto"});
  ASSERT_TRUE(job.problems.empty()) << job.problems.front().text;
  EXPECT_DOUBLE_EQ(price_of(job.resolved, 8).step_seconds, least_seconds(common, recomputations()));
  EXPECT_EQ(job.resolved.job.training.local_batch_size, 2);
}

TEST(Automatic, FindsTheFastestMesh) {
  const Flags common = of_llama() + Flags{"--training.local_batch_size",  "1",
                                          "--training.global_batch_size", "32",
                                          "--activation_checkpoint.mode", "none"};
  std::vector<Flags> meshes;
  for (const char* pp : {"1", "2", "4", "8"})
    for (const char* tp : {"1", "2", "4", "8"})
      for (const char* cp : {"1", "2", "4", "8"})
        meshes.push_back({"--parallelism.pipeline_parallel_degree", pp,
                          "--parallelism.tensor_parallel_degree", tp,
                          "--parallelism.context_parallel_degree", cp});
  const config::Reading job =
      chosen(common + Flags{"--parallelism.pipeline_parallel_degree", "auto",
                            "--parallelism.tensor_parallel_degree", "auto",
                            "--parallelism.context_parallel_degree", "auto"});
  ASSERT_TRUE(job.problems.empty()) << job.problems.front().text;
  EXPECT_DOUBLE_EQ(price_of(job.resolved, 8).step_seconds, least_seconds(common, meshes));
  EXPECT_EQ(job.resolved.job.training.global_batch_size, 32);
}

TEST(Automatic, FindsMicrobatchAndSplitOfAPipeline) {
  const Flags common = of_llama("3B") + Flags{"--training.global_batch_size",           "32",
                                              "--parallelism.pipeline_parallel_degree", "4",
                                              "--activation_checkpoint.mode",           "none"};
  std::vector<Flags> variants;
  for (const char* split : {"layers", "balanced", "balanced_sublayer"})
    for (const char* rows : {"1", "2", "4", "8"})
      variants.push_back({"--parallelism.pipeline_parallel_split", split,
                          "--training.local_batch_size", "16",
                          "--parallelism.pipeline_parallel_microbatch_size", rows});
  const config::Reading job =
      chosen(common + Flags{"--training.local_batch_size", "auto",
                            "--parallelism.pipeline_parallel_split", "auto"});
  ASSERT_TRUE(job.problems.empty()) << job.problems.front().text;
  EXPECT_DOUBLE_EQ(price_of(job.resolved, 8).step_seconds, least_seconds(common, variants));
  EXPECT_EQ(job.resolved.origin("parallelism.pipeline_parallel_microbatch_size"),
            "training.local_batch_size");
}

TEST(Automatic, TakesLargerMicrobatchesWhereTheyAreFaster) {
  const Flags common = Flags{"--model.name",
                             "llama3",
                             "--model.flavor",
                             "1B",
                             "--training.seq_len",
                             "1024",
                             "--training.dataset_path",
                             "x",
                             "--training.global_batch_size",
                             "64",
                             "--activation_checkpoint.mode",
                             "none"};
  std::vector<Flags> variants;
  for (const char* rows : {"1", "2", "4", "8"})
    variants.push_back({"--training.local_batch_size", rows});
  const config::Reading job = chosen(common + Flags{"--training.local_batch_size", "auto"});
  ASSERT_TRUE(job.problems.empty()) << job.problems.front().text;
  EXPECT_DOUBLE_EQ(price_of(job.resolved, 8).step_seconds, least_seconds(common, variants));
  EXPECT_GT(job.resolved.job.training.local_batch_size, 1);
}

TEST(Automatic, AVariantMayBeHeldToSomeKeys) {
  PlannedJob job({"Held", 8, {"--model.flavor", "8B", "--training.local_batch_size", "4"}});
  Variant variant = job.space.own();
  variant[Knob::pp] = 2;
  variant[Knob::microbatch] = 1;
  ASSERT_TRUE(job.space.job(variant));
  job.space.change_only({"parallelism.pipeline_parallel_degree"});
  EXPECT_FALSE(job.space.job(variant)) << "the batch of a rank would change, too";
  EXPECT_TRUE(job.space.job(job.space.own()));
}

TEST(Automatic, ChangesOnlyWhatIsLeftToIt) {
  const Flags flags = of_llama() + Flags{"--training.local_batch_size",
                                         "2",
                                         "--training.global_batch_size",
                                         "64",
                                         "--parallelism.tensor_parallel_degree",
                                         "auto",
                                         "--parallelism.pipeline_parallel_degree",
                                         "auto",
                                         "--activation_checkpoint.mode",
                                         "full"};
  const config::JobConfig before = config::read_job(flags).resolved.job;
  const config::Resolved after = chosen(flags).resolved;
  for (const config::Option& option : config::options()) {
    const bool open = option.key == "parallelism.tensor_parallel_degree" ||
                      option.key == "parallelism.pipeline_parallel_degree";
    EXPECT_TRUE(open || get(option, before) == get(option, after.job)) << option.key;
  }
  EXPECT_TRUE(config::left_to_planner(after.job).empty());
  EXPECT_EQ(after.origin("parallelism.tensor_parallel_degree"), "auto of command line");
  EXPECT_EQ(after.origin("activation_checkpoint.mode"), "command line");
}

TEST(Automatic, SaysWhatItChoseAndWhy) {
  const config::Reading job =
      chosen(of_llama() + Flags{"--training.global_batch_size", "64", "--training.local_batch_size",
                                "1", "--parallelism.tensor_parallel_degree", "auto"});
  ASSERT_FALSE(job.resolved.choices.empty());
  EXPECT_THAT(job.resolved.choices.front(),
              AllOf(HasSubstr("auto on 8 x h100-700w: parallelism.tensor_parallel_degree = "),
                    HasSubstr("tokens/s a GPU")));
  EXPECT_THAT(job.resolved.choices.back(), AllOf(HasSubstr("auto: tp "), HasSubstr(" %")));
}

TEST(Automatic, AJobWithoutSuchKeysStays) {
  const Flags flags = of_llama("70B");
  const config::Reading job = chosen(flags, 1);
  EXPECT_TRUE(job.problems.empty());
  EXPECT_TRUE(job.resolved.choices.empty());
  EXPECT_EQ(job.resolved.to_toml(), config::read_job(flags).resolved.to_toml());
}

TEST(Automatic, WhatDoesNotFitIsRefused) {
  const Flags flags = of_llama("70B") + Flags{"--training.global_batch_size", "64",
                                              "--training.local_batch_size",  "1",
                                              "--activation_checkpoint.mode", "auto"};
  EXPECT_THAT(complaint(flags, 8), AllOf(HasSubstr("no values of activation_checkpoint.mode"),
                                         HasSubstr("fit 8 x h100-700w with 79.1 GiB; take")));
  EXPECT_THAT(complaint(of_llama("405B") + Flags{"--training.global_batch_size", "80",
                                                 "--training.local_batch_size", "1",
                                                 "--parallelism.tensor_parallel_degree", "8",
                                                 "--activation_checkpoint.mode", "auto"},
                        80),
              HasSubstr("set optimizer.moments_dtype = \"bfloat16\""));
}

TEST(Automatic, WhatCannotBeChosenIsRefused) {
  const Flags tp = of_llama() + Flags{"--parallelism.tensor_parallel_degree", "auto"};
  const Flags batch{"--training.global_batch_size", "64"};
  EXPECT_THAT(complaint(tp + batch, 0), HasSubstr("is chosen for a number of ranks"));
  EXPECT_THAT(complaint(tp), HasSubstr("set training.global_batch_size"));
  EXPECT_THAT(complaint(tp + batch + Flags{"--parallelism.data_parallel_shard_degree", "4"}),
              HasSubstr("needs data_parallel_shard_degree = -1"));
  EXPECT_THAT(complaint(tp + batch + Flags{"--parallelism.context_parallel_degree", "-1"}),
              HasSubstr("set parallelism.context_parallel_degree to a number"));
  EXPECT_THAT(complaint(of_llama() + batch +
                        Flags{"--parallelism.pipeline_parallel_degree", "auto",
                              "--parallelism.pipeline_parallel_split", "measured"}),
              HasSubstr("set one of them"));
  // No mesh has so few sequences.
  EXPECT_THAT(complaint(of_llama() + Flags{"--activation_checkpoint.mode", "auto",
                                           "--training.global_batch_size", "7"}),
              HasSubstr("global_batch_size 7 is not a multiple"));
}

TEST(Automatic, AMachineMustHaveTheProducts) {
  for (const char* key : {"--activation_checkpoint.mode", "--training.local_batch_size"})
    EXPECT_THAT(complaint(of_llama("1B") + Flags{key, "auto", "--training.global_batch_size", "64",
                                                 "--training.mixed_precision_param", "float32"}),
                HasSubstr("has no fp32 products; take another precision (training.mixed_p"));
}

TEST(Automatic, TheMachineOfAJobMustBeNamed) {
  const auto complaint_of = [](const Flags& more) {
    config::Reading job =
        config::read_job(of_llama() + Flags{"--activation_checkpoint.mode", "auto"} + more);
    choose_values(job, 8, 0);
    return job.problems.empty() ? "" : job.problems.front().text;
  };
  EXPECT_THAT(complaint_of({}), HasSubstr("name it in job.machine"));
  EXPECT_THAT(complaint_of({"--job.machine", "h100-70w"}), HasSubstr("h100-700w"));
  EXPECT_EQ(complaint_of({"--job.machine", "h100-700w", "--training.local_batch_size", "1"}), "");
}

TEST(Automatic, NoPlanIsMadeOfOpenValues) {
  config::Reading job =
      config::read_job(of_llama() + Flags{"--parallelism.tensor_parallel_degree", "auto"});
  EXPECT_FALSE(plan::Planner().plan(job, 8, 0));
  ASSERT_EQ(job.problems.size(), 1U);
  EXPECT_THAT(job.problems.front().text, HasSubstr("has no value here"));
}

}  // namespace
}  // namespace tessera::planner
