// SPDX-License-Identifier: Apache-2.0
// What keys say together: contradictions are found all at once, each at the key to blame.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tessera/plan/job_plan.hpp"
#include "unit/config/config_files.hpp"

namespace tessera::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// What the rules say of a job that has data; empty if it is right.
std::string mistake(config::Strings args) {
  const bool named = std::ranges::any_of(args, [](const std::string& word) {
    return word.find("dataset_path") != word.npos || word.find("mixture") != word.npos;
  });
  if (!named) args.insert(args.end(), {"--training.dataset_path", "x"});
  config::Reading job = config::read_job(args);
  Planner().plan(job, 0, 0);
  if (job.problems.empty()) return "";
  EXPECT_EQ(config::code_of(job.problems), ExitCode::usage);
  return config::message_of(job.problems);
}

TEST(Rules, BlameThePlaceOfTheKeyThatWasWritten) {
  const config::test::JobFile file(
      "[training]\nseq_len = 100\n[parallelism]\ntensor_parallel_degree = 8\n");
  EXPECT_THAT(mistake({file.path()}),
              HasSubstr(file.at(2) + "1: seq_len 100 is not a multiple of 8"));
  EXPECT_THAT(mistake({"--parallelism.tensor_parallel_degree", "3"}),
              HasSubstr("--parallelism.tensor_parallel_degree: seq_len 2048"));
}

/// Settings of training; who only uses a model is not told of them.
TEST(Rules, WarnOfWhatHasNoEffect) {
  const auto warnings = [](config::JobUse use, const config::Strings& flags) {
    config::Reading job = config::read_job(flags);
    job.use = use;
    Planner().plan(job, 0, 0);
    return job.resolved.warnings;
  };
  constexpr config::JobUse training = config::JobUse::training;
  const config::Strings exports{"--checkpoint.export_dtype", "bfloat16"};
  const auto export_type = Contains(HasSubstr("checkpoint.export_dtype"));
  EXPECT_THAT(warnings(training, exports), export_type);
  EXPECT_THAT(warnings(config::JobUse::inference, exports), Not(export_type));
  EXPECT_THAT(warnings(training, {"--checkpoint.export_dtype", "float32"}), Not(export_type));
  EXPECT_THAT(warnings(training, {"--checkpoint.export_dtype", "bfloat16",
                                  "--checkpoint.last_save_model_only"}),
              Not(export_type));
  const auto recipe = Contains(HasSubstr("quantize.linear.float8.recipe_name"));
  const config::Strings rowwise{"--quantize.linear.float8.recipe_name", "rowwise"};
  EXPECT_THAT(warnings(training, rowwise), recipe);
  EXPECT_THAT(warnings(training, {rowwise[0], rowwise[1], "--model.converters", "float8"}),
              Not(recipe));
  const auto registered = Contains(HasSubstr("parallelism.fsdp_register_buffers"));
  const config::Strings registers{"--parallelism.fsdp_register_buffers"};
  EXPECT_THAT(warnings(training, registers), Not(registered));
  EXPECT_THAT(warnings(training, {registers[0], "--parallelism.data_parallel_shard_degree", "1"}),
              registered);
  EXPECT_THAT(warnings(training, {"--parallelism.enable_async_tensor_parallel"}),
              Contains(HasSubstr("parallelism.tensor_parallel_degree is 1")));
  const auto rounding = Contains(HasSubstr("optimizer.stochastic_rounding"));
  const auto nearest = [&](const char* type) {
    return warnings(training,
                    {"--training.dtype", type, "--optimizer.stochastic_rounding", "false"});
  };
  EXPECT_THAT(nearest("float32"), rounding);
  EXPECT_THAT(nearest("float23"), Not(rounding)) << "the type was misread";
  EXPECT_THAT(nearest("bfloat16"), Not(rounding));
}

TEST(Rules, TheStoredConfigurationReplacesNoOtherFile) {
  const auto saved_as = [](const char* name) {
    return mistake({"--checkpoint.folder", "out/ckpt/", "--job.save_config_file", name});
  };
  for (const char* name : {"resolved.toml", "configs/a.toml", "out/a.toml"})
    EXPECT_EQ(saved_as(name), "");
  for (const char* name : {"../a.toml", "/tmp/a.toml", "x/../../a.toml", ".", "x/", ""})
    EXPECT_THAT(saved_as(name), HasSubstr("is not the name of a file in job.dump_folder"));
  for (const char* name : {".owner", "./metrics.jsonl", "metrics.1.jsonl", "loss.svg", "sample.txt",
                           "out", "out/ckpt/a.toml", "comm_traces/a.toml", "tokens"})
    EXPECT_THAT(saved_as(name), HasSubstr("is a file or folder of the run"));
  const config::test::JobFile job("[training]\nsteps = 3\n");
  const std::filesystem::path path = job.path();
  EXPECT_THAT(mistake({path.string(), "--job.dump_folder", path.parent_path().string(),
                       "--job.save_config_file", path.filename().string()}),
              HasSubstr("is the job file itself"));
}

TEST(Rules, ASchedulesFileIsNamed) {
  for (const char* schedule : {"PipelineScheduleSingle", "PipelineScheduleMulti"})
    EXPECT_THAT(mistake({"--parallelism.pipeline_parallel_degree", "2",
                         "--parallelism.pipeline_parallel_schedule", schedule}),
                HasSubstr("needs pipeline_parallel_schedule_csv"));
}

TEST(Rules, LeaveSomethingToTrain) {
  EXPECT_THAT(mistake({"--training.freeze", ".*"}), HasSubstr("nothing is left to train"));
  EXPECT_THAT(mistake({"--training.freeze", "^tok,^layers,^norm,^output"}),
              HasSubstr("--training.freeze: training.freeze matches every parameter of llama3"));
  EXPECT_EQ(mistake({"--training.freeze", "^tok,^layers,^norm"}), "");
  EXPECT_THAT(mistake({"--training.freeze", "("}), HasSubstr("training.freeze"));
  EXPECT_THAT(mistake({"--optimizer.lr", "inf"}), HasSubstr("must be a finite number"));
  EXPECT_EQ(mistake({"--training.max_norm", "inf"}), "");
}

TEST(Rules, MicrobatchesFillTheRoundsOfASchedule) {
  const auto with = [](const char* schedule) {
    return std::vector<std::string>{
        "--parallelism.pipeline_parallel_degree",   "4",     "--training.local_batch_size", "9",
        "--parallelism.pipeline_parallel_schedule", schedule};
  };
  for (const char* schedule : {"Interleaved1F1B", "InterleavedZeroBubble"})
    EXPECT_THAT(mistake(with(schedule)),
                HasSubstr("a number of microbatches (9) that fills equal rounds of at least"));
  EXPECT_EQ(mistake(with("LoopedBFS")), "");
}

/// Each file has one mistake and another key, which contradicts what the mistake leaves in the
/// place of its key.
TEST(Rules, DoNotFollowFromAValueThatWasNotTaken) {
  for (const std::string text : {
           "[parallelism]\ncontext_parallel_degree = 3\n[training]\nseq_len = '96'",
           "[parallelism]\ncontext_parallel_degree = 3\n[training]\nsec_len = 96",
           "[parallelism]\ncontext_parallel_degree = 3\n[trainning]\nseq_len = 96",
           "training = 96\n[parallelism]\ncontext_parallel_degree = 3",
           "[training]\nseq_len = 1026\n[parallelism]\ntensor_parallel_degree = "
           "4\ndisable_sequence_parallel = 1",
           "[training]\nseq_len = 6\n[parallelism]\ncontext_parallel_degree = "
           "2\ncontext_parallel_load_balancer = 0",
           "[validation]\nenable = true\nsplit = 0.1\nseq_len = 4096\n[training]\nseq_len = '8192'",
           "[validation]\nenable = true\nsplit = 0.1\nseq_len = '64'\n[training]\nseq_len = 128",
           "[training]\nglobal_batch_size = 12\nlocal_batch_size = '4'",
           "[parallelism]\npipeline_parallel_degree = -1\ndata_parallel_shard_degree = 'two'",
           "[parallelism]\nexpert_tensor_parallel_degree = 4\ntensor_parallel_degree = '4'",
           "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3\n"
           "[training]\nlocal_batch_sise = 6",
           "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_microbatch_steps = "
           "['2:3']\n"
           "[training]\nlocal_batch_size = '6'",
           "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'LoopedDFS'\n"
           "pipeline_parallel_split_points = ['layers.1', 'layers.2', 'layers.3']",
           "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = "
           "'PipelineScheduleMulti'\n"
           "pipeline_parallel_schedule_csv = 1",
           "[training]\ndtype = 'float46'\nmixed_precision_param = 'float64'",
           "[model]\nname = 1\nflavor = '8x7B'",
           "[checkpoint]\ninitial_load_in_hf_quantized = true\ninitial_load_in_hf = 1",
           "[checkpoint]\ncreate_seed_checkpoint = true\nenable = 'yes'",
           "[training]\ndataset = 'tokens'\n[training.dataloader]\nprefetch_factor = "
           "2\nnum_workers = '2'",
           "[[training.mixture]]\npath = 'a'",
           "[[training.mixture]]\npath = 'a'\nweight = 1\n"
           "[[training.mixture]]\npath = 'b/a'\nweight = 1\nnmae = 'b'",
       }) {
    const bool data = text.find("mixture") == text.npos;
    const config::test::JobFile file(text + "\n");
    config::Reading job =
        data ? config::read_job({file.path(), "--data", "x"}) : config::read_job({file.path()});
    Planner().plan(job, 0, 0);
    ASSERT_EQ(job.problems.size(), 1u) << text << "\n" << message_of(job.problems);
    EXPECT_TRUE(job.problems[0].misread) << message_of(job.problems);
  }
}

TEST(Rules, DoNotAskForDataThatWasMisread) {
  const config::test::JobFile file("[training]\ndataset = 'tokens'\ndataset_path = 1\n");
  for (const auto& args : std::vector<config::Strings>{
           {file.path()}, {"--data", "\x80"}, {"--data"}, {"--training.dataset_pth", "x"}}) {
    config::Reading job = config::read_job(args);
    Planner().plan(job, 0, 0);
    EXPECT_EQ(job.problems.size(), 1u) << message_of(job.problems);
  }
}

TEST(Rules, ImpossibleDataIsRefused) {
  EXPECT_THAT(mistake({"--training.mixture", "a,1", "--training.dataset_path", "b"}),
              HasSubstr("keep one"));
  EXPECT_THAT(mistake({"--training.mixture", "a,1", "--training.dataset", "replay"}),
              HasSubstr("replay"));
  EXPECT_THAT(mistake({"--validation.split", "0.1", "--validation.dataset_path", "b"}),
              HasSubstr("keep one"));
  EXPECT_THAT(mistake({"--validation.enable", "--validation.dataset_path", "b",
                       "--validation.seq_len", "4096"}),
              HasSubstr("longer than"));
  EXPECT_THAT(mistake({"--validation.enable", "--validation.dataset_path", "b",
                       "--validation.steps", "4", "--validation.samples", "4"}),
              HasSubstr("keep one"));
  EXPECT_THAT(mistake({"--validation.enable", "--validation.dataset", "tokens"}),
              HasSubstr("dataset_path"));
  EXPECT_THAT(mistake({"--validation.enable"}), HasSubstr("validation.split"));
  for (const char* dataset : {"replay", "c4"}) {
    config::Reading job = config::read_job({"--training.dataset", dataset});
    Planner().plan(job, 0, 0);
    EXPECT_THAT(config::message_of(job.problems), HasSubstr("needs training.dataset_path"));
  }
}

TEST(Rules, MicrobatchesMayBeAuto) {
  const config::Strings automatic{"--parallelism.pipeline_parallel_degree", "2",
                                  "--parallelism.pipeline_parallel_microbatch_size", "auto"};
  EXPECT_EQ(mistake(automatic), "");
  for (const config::Strings& more :
       {config::Strings{"--debug.deterministic"},
        {"--parallelism.pipeline_parallel_microbatch_steps", "3:2"}}) {
    config::Strings flags = automatic;
    flags.insert(flags.end(), more.begin(), more.end());
    EXPECT_THAT(mistake(flags), HasSubstr("auto")) << more[0];
  }
}

TEST(Rules, MicrobatchStepsDivideTheBatch) {
  EXPECT_THAT(mistake({"--parallelism.pipeline_parallel_degree", "2",
                       "--parallelism.pipeline_parallel_microbatch_steps", "3:5"}),
              HasSubstr("is not a multiple of pipeline_parallel_microbatch_steps 5"));
}

std::string warnings(const config::Strings& flags) {
  config::Reading job = config::read_job(flags);
  Planner().plan(job, 0, 0);
  return fmt::format("{}", fmt::join(job.resolved.warnings, "\n"));
}

TEST(Rules, WarnOfSettingsThatLackAnother) {
  const std::vector<std::pair<config::Strings, std::string>> settings{
      {{"--checkpoint.load_step", "3"}, "checkpoint.enable"},
      {{"--checkpoint.load_only"}, "checkpoint.enable"},
      {{"--checkpoint.last_save_in_hf"}, "checkpoint.enable"},
      {{"--optimizer.on_nonfinite", "rewind"}, "checkpoint.enable"},
      {{"--optimizer.on_spike", "rewind"}, "optimizer.spike_zscore"},
      {{"--training.document_end_id", "1"}, "training.document_mask"},
      {{"--profiling.enable_profiling", "--profiling.profile_freq", "20000"},
       "profiling.profile_freq"},
      {{"--profiling.enable_memory_snapshot", "--profiling.profile_freq", "20000"},
       "profiling.profile_freq"}};
  for (const auto& [flags, lacks] : settings) {
    config::Strings words{"--data", "x"};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_THAT(warnings(words),
                testing::AllOf(testing::StartsWith(flags.front().substr(2)), HasSubstr(lacks)));
  }
  EXPECT_EQ(warnings({"--data", "x", "--checkpoint.enable", "--checkpoint.load_step", "3",
                      "--optimizer.on_nonfinite", "rewind"}),
            "");
}

TEST(Rules, WarnOfLearningRatesThatAreCut) {
  EXPECT_EQ(warnings({"--data", "x", "--lr_scheduler.decay_ratio", "0.5"}), "");
  EXPECT_THAT(warnings({"--data", "x", "--training.steps", "100", "--lr_scheduler.warmup_steps",
                        "60", "--lr_scheduler.decay_ratio", "0.5"}),
              HasSubstr("the rate decays in the last 40 steps"));
  EXPECT_THAT(warnings({"--data", "x", "--lr_scheduler.total_steps", "500"}),
              HasSubstr("keeps its last value"));
}

/// Each of these files is blamed on one of its lines.
TEST(Rules, ImpossiblePairsAreRefused) {
  const std::vector<std::pair<config::Strings, std::string>> pairs{
      {{"[parallelism]", "pipeline_parallel_degree = -1"}, "both -1"},
      {{"[parallelism]", "context_parallel_degree = 3"}, "not a multiple"},
      {{"[training]", "global_batch_size = 12"}, "not a multiple"},
      {{"[training]", "mixed_precision_param = \"float64\""}, "needs training.dtype"},
      {{"[checkpoint]", "keep_latest_k = 1"}, "keep_latest_k"},
      {{"[checkpoint]", "initial_load_in_hf = true", "initial_load_model_only = false"},
       "contradicts"},
      {{"[checkpoint]", "initial_load_model_only = false"}, "initial_load_path, which is not set"},
      {{"[checkpoint]", "create_seed_checkpoint = true", "enable = true",
        "initial_load_path = 'base'", "initial_load_model_only = false"},
       "continues at a later one"},
      {{"[parallelism]", "pipeline_parallel_degree = 2", "pipeline_parallel_microbatch_size = 3"},
       "not a multiple"},
      {{"[parallelism]", "pipeline_parallel_degree = 3",
        "pipeline_parallel_schedule = 'Interleaved-1F1B'",
        "module_fqns_per_model_part = [['a'], ['b']]"},
       "do not fit"},
      {{"[parallelism]", "pipeline_parallel_degree = 2",
        "pipeline_parallel_schedule_csv = 'x.csv'"},
       "needs pipeline_parallel_schedule"},
      {{"[parallelism]", "expert_tensor_parallel_degree = 4"}, "neither 1 nor"},
      {{"[training.dataloader]", "prefetch_factor = 2"}, "num_workers"},
      {{"[activation_checkpoint]", "selective_ac_option = '0'"}, "positive number"},
      {{"[model]", "flavor = '9B'"}, "is not a flavor"},
  };
  for (const auto& [lines, text] : pairs) {
    const config::test::JobFile file(fmt::format("{}\n", fmt::join(lines, "\n")));
    EXPECT_THAT(mistake({file.path()}),
                testing::AllOf(testing::StartsWith(file.path()), HasSubstr(text)))
        << lines.back();
  }
}

}  // namespace
}  // namespace tessera::plan
