// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/job_plan.hpp"

#include <gmock/gmock.h>

#include "support/error_of.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

JobPlan plan_of(config::Strings flags, int ranks = 1) {
  flags.insert(flags.end(), {"--training.dataset_path", "x"});
  return plan_job(config::resolve(flags), ranks, 0);
}

TEST(JobPlan, NamesTypesOnce) {
  const PrecisionPlan usual = plan_of({}).precision;
  EXPECT_EQ(usual.master, DType::f32);
  EXPECT_EQ(usual.compute, DType::bf16);
  EXPECT_EQ(usual.reduce, DType::f32);
  EXPECT_EQ(plan_of({"--training.mixed_precision_reduce", "bfloat16"}).precision.reduce,
            DType::bf16);
  EXPECT_EQ(plan_of({"--training.dtype", "float64"}).precision.reduce, DType::f64);
}

TEST(JobPlan, HasTheMeshAndWhatFollowsFromIt) {
  const JobPlan plan = plan_of(
      {"--parallelism.pipeline_parallel_degree", "2", "--parallelism.tensor_parallel_degree", "2"},
      8);
  EXPECT_EQ(plan.layout.degree(mesh::Axis::dp_shard), 2);
  EXPECT_EQ(plan.batch().global_batch, 16);
  EXPECT_EQ(plan.microbatches.pipeline.map.stages(), 2);
  ASSERT_TRUE(plan.microbatches.pipeline.ranges);
  EXPECT_EQ(plan.microbatches.pipeline.ranges->back().end(),
            static_cast<std::int64_t>(plan.model.spec->cells.size()));
  EXPECT_EQ(plan.microbatches.pipeline.name, "1F1B");
}

TEST(JobPlan, CellsAreTimedFirstWhereTheJobSaysSo) {
  const JobPlan plan = plan_of({"--parallelism.pipeline_parallel_degree", "2",
                                "--parallelism.pipeline_parallel_split", "measured"},
                               2);
  EXPECT_FALSE(plan.microbatches.pipeline.ranges);
}

TEST(JobPlan, MicrobatchesFollowTheirSteps) {
  const JobPlan plan = plan_of({"--parallelism.pipeline_parallel_degree", "2",
                                "--parallelism.pipeline_parallel_microbatch_steps", "3:2,10:4"},
                               2);
  EXPECT_EQ(plan.microbatches_at(2).batch.microbatch_rows, 1);
  EXPECT_EQ(plan.microbatches_at(3).batch.microbatch_rows, 2);
  EXPECT_EQ(plan.microbatches_at(9).batch.microbatch_rows, 2);
  EXPECT_EQ(plan.microbatches_at(1000).batch.microbatch_rows, 4);
  EXPECT_TRUE(plan.microbatch_trials.empty());
}

/// 1F1B on 4 ranks needs 4 microbatches of the 8 sequences.
TEST(JobPlan, TriesTheSizesThatFillThePipeline) {
  const JobPlan plan = plan_of({"--parallelism.pipeline_parallel_degree", "4",
                                "--parallelism.pipeline_parallel_microbatch_size", "auto"},
                               4);
  ASSERT_EQ(plan.microbatch_trials.size(), 2u);
  EXPECT_EQ(plan.batch().microbatch_rows, 1);
  EXPECT_EQ(plan.microbatch_trials.back().batch.microbatch_rows, 2);
}

TEST(JobPlan, ReadsAheadAsTorchTitansNumbersSay) {
  const auto ahead = [](const config::Strings& flags) { return plan_of(flags).data.read_ahead; };
  const std::string workers = "--training.dataloader.num_workers",
                    factor = "--training.dataloader.prefetch_factor";
  EXPECT_EQ(ahead({}).steps, 1);
  EXPECT_EQ(ahead({workers, "3"}).steps, 6) << "PyTorch reads two batches ahead by default";
  EXPECT_EQ(ahead({workers, "3"}).threads, 3);
  EXPECT_EQ(ahead({workers, "3", factor, "4"}).steps, 12);
  EXPECT_EQ(ahead({workers, "100000"}).threads, 64);
  EXPECT_EQ(ahead({workers, "100000", factor, "100000"}).steps, 1024);
}

TEST(JobPlan, ValidationReadsAheadByItsOwnNumbers) {
  const auto ahead = [](const config::Strings& flags) {
    config::Strings all{"--validation.enable", "--validation.split", "0.1",
                        "--training.dataloader.num_workers", "5"};
    all.insert(all.end(), flags.begin(), flags.end());
    return plan_of(all).data.validation.value().read_ahead;
  };
  const std::string workers = "--validation.dataloader.num_workers",
                    factor = "--validation.dataloader.prefetch_factor";
  EXPECT_EQ(ahead({}).threads, 1) << "training's workers read for training";
  EXPECT_EQ(ahead({workers, "3"}).threads, 3);
  EXPECT_EQ(ahead({workers, "3"}).steps, 6);
  EXPECT_EQ(ahead({workers, "3", factor, "4"}).steps, 12);
}

TEST(JobPlan, ReplaysLeaveOutWhatContradictsThem) {
  const FaultPlan plan =
      plan_of({"--validation.enable", "--validation.split", "0.1",
               "--checkpoint.exclude_from_loading", "optimizer", "--checkpoint.initial_load_path",
               "base", "--checkpoint.no_initial_load_model_only"})
          .faults;
  EXPECT_EQ(plan.replay_flags,
            " --checkpoint.initial_load_model_only --validation.no_enable --validation.split 0");
  EXPECT_EQ(plan.replay_start_flags, " --checkpoint.exclude_from_loading=");
}

/// What a branch excludes, it excludes once: not of its own checkpoints.
TEST(JobPlan, ABranchStartsFromAllOfAnotherRun) {
  const auto load = [](const config::Strings& flags) { return plan_of(flags).load; };
  const std::string path = "--checkpoint.initial_load_path",
                    branch = "--checkpoint.no_initial_load_model_only";
  EXPECT_FALSE(load({path, "base"}).from->branch);
  const LoadPlan plan =
      load({path, "base", branch, "--checkpoint.exclude_from_loading", "optimizer"});
  EXPECT_TRUE(plan.from->branch);
  EXPECT_FALSE(plan.initial.optimizer || plan.initial.saves);
  EXPECT_TRUE(plan.own.optimizer && plan.own.saves);
}

/// As TorchTitan has it: the folder of the tokenizer holds the weights, too.
TEST(JobPlan, HuggingFaceWeightsAreBesideTheTokenizer) {
  const auto from = [](const config::Strings& flags) { return plan_of(flags).load.from.value(); };
  const std::string in_hf = "--checkpoint.initial_load_in_hf";
  const InitialState beside = from({in_hf, "--model.hf_assets_path", "assets"});
  EXPECT_EQ(beside.path, "assets");
  EXPECT_TRUE(beside.in_hf);
  EXPECT_TRUE(beside.named) << "the command line asks for these weights";
  EXPECT_TRUE(from({in_hf, "--checkpoint.initial_load_path", "weights"}).named);
}

/// One rule for all commands; what a job's file says of a step is of its training.
TEST(WeightOrigins, TrainingTakesOwnCheckpointsAndInferenceWhatTheCommandLineNames) {
  const auto chosen = [](config::JobUse use, bool has_own, const config::Strings& flags) {
    return WeightOrigins::of(config::resolve(flags)).choose(use, has_own);
  };
  constexpr config::JobUse training = config::JobUse::training,
                           inference = config::JobUse::inference;
  const config::Strings others{"--checkpoint.initial_load_path", "base"},
      resumes{"--checkpoint.enable", "--checkpoint.initial_load_path", "base"},
      step{"--checkpoint.enable", "--checkpoint.load_step", "3"};
  EXPECT_EQ(chosen(training, true, {}), WeightOrigin::initial_values) << "enable is false";
  EXPECT_EQ(chosen(training, true, others), WeightOrigin::initial_state);
  EXPECT_EQ(chosen(training, true, resumes), WeightOrigin::own);
  EXPECT_EQ(chosen(training, false, resumes), WeightOrigin::initial_state);
  EXPECT_EQ(chosen(training, false, step), WeightOrigin::own) << "or it would be ignored";
  EXPECT_EQ(chosen(inference, true, {}), WeightOrigin::own);
  EXPECT_EQ(chosen(inference, false, {}), WeightOrigin::initial_values);
  EXPECT_EQ(chosen(inference, true, others), WeightOrigin::initial_state);
  EXPECT_EQ(chosen(inference, false, step), WeightOrigin::own);
  WeightOrigins of_the_file = WeightOrigins::of(config::resolve(others));
  of_the_file.from->named = false;
  EXPECT_EQ(of_the_file.choose(inference, true), WeightOrigin::own);
  EXPECT_EQ(of_the_file.choose(inference, false), WeightOrigin::initial_state);
}

TEST(JobPlan, ProblemsOfAResolvedJobNameTheOrigins) {
  const std::string error = error_of(ExitCode::usage, [&] {
    plan_of({"--parallelism.tensor_parallel_degree", "3"}, 8);
  });
  EXPECT_THAT(error, HasSubstr("command line: tp 3 does not divide 8 ranks"));
}

TEST(InferencePlan, ComputesInTheTypeOfTheWeights) {
  EXPECT_EQ(plan_inference(config::resolve({}), 0).precision.compute, DType::f32);
  EXPECT_EQ(plan_inference(config::resolve({"--training.mixed_precision_param", "bfloat16"}), 0)
                .precision.compute,
            DType::bf16);
  EXPECT_THROW(plan_inference(config::resolve({"--training.mixed_precision_param", "float64"}), 0),
               Error);
}

}  // namespace
}  // namespace tessera::plan
