// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/job_check.hpp"

#include <gmock/gmock.h>

#include "support/temporary_folder.hpp"
#include "unit/config/config_files.hpp"

namespace tessera::inputs {
namespace {

using config::test::JobFile;
using testing::HasSubstr;

TEST(JobCheck, LooksAtFiles) {
  JobCheck check(JobCheck::Files::looked_at);
  config::Reading job = config::read_job(
      {"--training.dataset_path", "/no/data", "--training.dataset", "text",
       "--checkpoint.initial_load_path", "/no/weights", "--model.hf_assets_path", "/no/tokenizer"});
  check.find_problems(job, 1);
  ASSERT_EQ(job.problems.size(), 3u) << message_of(job.problems);
  EXPECT_THAT(message_of(job.problems), HasSubstr("model.hf_assets_path"));
  EXPECT_EQ(code_of(job.problems), ExitCode::data);
  EXPECT_THAT(message_of(job.problems),
              HasSubstr("--training.dataset_path: there is no file or folder '/no/data'"));
  EXPECT_THAT(message_of(job.problems),
              HasSubstr("--checkpoint.initial_load_path: there is no file"));
  const JobFile text("some text");
  config::Reading no_tokenizer = config::read_job(
      {"--training.dataset_path", text.path(), "--model.hf_assets_path", "/no/tokenizer"});
  check.find_problems(no_tokenizer, 1);
  EXPECT_THAT(message_of(no_tokenizer.problems), HasSubstr("tessera tokenizer train"));
}

TEST(JobCheck, KnowsTheMachine) {
  const auto problems = [](const char* machine, JobCheck::Files files, config::JobUse use) {
    config::Reading job =
        config::read_job({"--training.dataset_path", "not read", "--job.machine", machine});
    job.use = use;
    JobCheck(files).find_problems(job, 1);
    return job.problems.empty() ? std::string() : message_of(job.problems);
  };
  using enum JobCheck::Files;
  using enum config::JobUse;
  EXPECT_THAT(
      problems("h100-70w", ignored, training),
      HasSubstr("--job.machine: machine 'h100-70w' is not known; did you mean 'h100-700w'?"));
  EXPECT_THAT(problems("/no/such.toml", looked_at, training), HasSubstr("/no/such.toml"));
  EXPECT_EQ(problems("/no/such.toml", ignored, training), "");
  EXPECT_THAT(problems("/no/such.toml", looked_at, inference),
              testing::Not(HasSubstr("such.toml")));
  EXPECT_EQ(problems("h100", ignored, training), "");
  EXPECT_EQ(problems("host", ignored, training), "");

  config::Reading chosen = config::read_job({"--training.dataset_path", "not read", "--job.machine",
                                             "h100-70w", "--activation_checkpoint.mode", "auto"});
  JobCheck(ignored).find_problems(chosen, 1);
  EXPECT_EQ(chosen.problems.size(), 1u) << message_of(chosen.problems);
}

TEST(JobCheck, ALastSaveForHuggingFaceNeedsAModelOfItsClasses) {
  const auto problems = [](const char* flavor, const config::Strings& more,
                           config::JobUse use = config::JobUse::training) {
    config::Strings flags{
        "--training.dataset_path", "not read", "--model.name",       "deepseek_v3",
        "--model.flavor",          flavor,     "--checkpoint.enable"};
    flags.insert(flags.end(), more.begin(), more.end());
    config::Reading job = config::read_job(flags);
    job.use = use;
    JobCheck(JobCheck::Files::ignored).find_problems(job, 0);
    return job.problems.empty() ? std::string() : message_of(job.problems);
  };
  const config::Strings last{"--checkpoint.last_save_in_hf"};
  EXPECT_THAT(problems("16B", last), HasSubstr("16B selects experts by softmax, which"));
  EXPECT_EQ(problems("16B", {}), "");
  EXPECT_EQ(problems("671B", last), "");
  EXPECT_EQ(problems("16B", {last[0], "--checkpoint.create_seed_checkpoint"}), "");
  EXPECT_EQ(problems("16B", last, config::JobUse::inference), "");
}

/// A replay file has its length in its shape; text needs a tokenizer.
TEST(JobCheck, DoesNotHoldFilesAgainstAMisreadKey) {
  const std::string replay = TESSERA_TEST_DATA "/llama_a/batches.safetensors";
  const JobFile text("some text");
  for (const config::Strings& args : std::vector<config::Strings>{
           {"--data", replay, "--training.dataset", "replay", "--training.seq_len", "many"},
           {"--data", replay, "--training.dataset", "reply", "--training.seq_len", "64"},
           {"--data", text.path(), "--model.hf_assets_path"}}) {
    config::Reading job = config::read_job(args);
    JobCheck(JobCheck::Files::looked_at).find_problems(job, 1);
    ASSERT_EQ(job.problems.size(), 1u) << message_of(job.problems);
    EXPECT_TRUE(job.problems[0].misread);
    EXPECT_THAT(job.problems[0].text, testing::Not(HasSubstr("tokenizer train")));
  }
}

/// A start of training would say the same: by the same functions.
TEST(JobCheck, AsksForTheSamplesOfAllSteps) {
  const test::TemporaryFolder run;
  const std::string replay = TESSERA_TEST_DATA "/llama_a/batches.safetensors";
  const auto problems = [&](const config::Strings& flags, config::JobUse use) {
    config::Strings args{"--data",
                         replay,
                         "--training.dataset",
                         "replay",
                         "--training.seq_len",
                         "64",
                         "--job.dump_folder",
                         run.path().string()};
    args.insert(args.end(), flags.begin(), flags.end());
    config::Reading job = config::read_job(args);
    job.use = use;
    JobCheck(JobCheck::Files::looked_at).find_problems(job, 1);
    return job.problems.empty() ? std::string() : message_of(job.problems);
  };
  using enum config::JobUse;
  EXPECT_THAT(problems({}, inference),
              HasSubstr("checkpoint holds no checkpoint; name the folder"));
  std::filesystem::create_directories(run / "checkpoint" / "step-00000000");
  EXPECT_EQ(problems({"--training.steps", "20"}, training), "");
  EXPECT_THAT(problems({"--training.steps", "21"}, training),
              HasSubstr("needs 168 samples, and training.dataset_path has 160"));
  EXPECT_EQ(problems({"--training.steps", "21"}, inference), "") << "no step is taken";
  EXPECT_THAT(problems({"--training.steps", "2", "--training.local_batch_size", "9"}, training),
              HasSubstr("has 8 rows a step; the global batch needs 9"));
  EXPECT_THAT(problems({"--training.steps", "2", "--training.document_mask"}, training),
              HasSubstr("documents are masked"));
}

TEST(JobCheck, LooksForWeights) {
  const test::TemporaryFolder folder;
  const auto problems = [&](const config::Strings& flags) {
    config::Strings args{"--data",
                         folder.file("text.txt", "some text").string(),
                         "--job.dump_folder",
                         (folder / "run").string(),
                         "--model.hf_assets_path",
                         TESSERA_TEST_DATA "/hf_tiny"};
    args.insert(args.end(), flags.begin(), flags.end());
    config::Reading job = config::read_job(args);
    JobCheck(JobCheck::Files::named).find_problems(job, 1);
    return job.problems.empty() ? std::string() : message_of(job.problems);
  };
  const std::string path = "--checkpoint.initial_load_path", tiny = TESSERA_TEST_DATA "/hf_tiny";
  EXPECT_THAT(problems({path, tiny}), HasSubstr("Hugging Face weights; add"));
  EXPECT_THAT(problems({path, tiny, "--checkpoint.no_initial_load_model_only"}),
              HasSubstr("have no training state"));
  EXPECT_EQ(problems({path, tiny, "--checkpoint.initial_load_in_hf"}), "");
  EXPECT_THAT(problems({path, folder.path().string(), "--checkpoint.initial_load_in_hf"}),
              HasSubstr("no weights in"));
  EXPECT_THAT(problems({path, folder.path().string()}),
              HasSubstr("holds no checkpoint of Tessera"));
  folder.file("manifest.json", "{}");
  EXPECT_EQ(problems({path, folder.path().string()}), "");

  const config::Strings step{"--checkpoint.enable", "--checkpoint.load_step", "7"};
  std::filesystem::create_directories(folder / "run" / "checkpoint" / "step-00000004");
  EXPECT_THAT(problems(step), HasSubstr("step-00000007; steps that are there: 4"));
  std::filesystem::create_directories(folder / "run" / "checkpoint" / "step-00000009");
  EXPECT_EQ(problems(step), "") << "it may have been removed since";
}

TEST(JobCheck, DataThatAreLookedUpByNameMayBeElsewhere) {
  const auto problems = [](const char* dataset, JobCheck::Files files) {
    config::Reading job = config::read_job({"--training.dataset", dataset});
    JobCheck(files).find_problems(job, 1);
    return job.problems.empty() ? std::string() : message_of(job.problems);
  };
  EXPECT_EQ(problems("c4", JobCheck::Files::ignored), "");
  EXPECT_THAT(problems("c4", JobCheck::Files::named),
              HasSubstr("or set TESSERA_DATA to a folder that has it"));
  EXPECT_THAT(problems("text", JobCheck::Files::ignored), HasSubstr("needs training.dataset_path"));
}

TEST(JobCheck, AnEvaluationOnDataOfTheirOwnReadsNoOthers) {
  const test::TemporaryFolder run;
  std::filesystem::create_directories(run / "checkpoint" / "step-00000000");
  const auto problems = [&](config::JobUse use, const config::Strings& flags) {
    config::Strings args{"--job.dump_folder", run.path().string(), "--validation.enable"};
    args.insert(args.end(), flags.begin(), flags.end());
    config::Reading job = config::read_job(args);
    job.use = use;
    JobCheck(JobCheck::Files::looked_at).find_problems(job, 1);
    return job.problems.empty() ? std::string() : message_of(job.problems);
  };
  const std::string replay = TESSERA_TEST_DATA "/llama_a/batches.safetensors";
  const config::Strings own{"--validation.dataset", "replay", "--validation.dataset_path", replay,
                            "--training.seq_len",   "64",     "--validation.seq_len",      "64"};
  config::Strings both = own;
  both.insert(both.end(), {"--training.dataset_path", "/no/data"});
  using enum config::JobUse;
  EXPECT_EQ(problems(inference, own), "");
  EXPECT_EQ(problems(inference, both), "");
  EXPECT_THAT(problems(training, own), HasSubstr("the job names no data"));
  EXPECT_THAT(problems(training, both), HasSubstr("/no/data"));
}

}  // namespace
}  // namespace tessera::inputs
