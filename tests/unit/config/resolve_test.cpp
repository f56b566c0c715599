// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/resolve.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "config_files.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::config {
namespace {

using test::JobFile;
using test::unsupported;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

void expect_same(const JobConfig& a, const JobConfig& b) {
  for (const Option& option : options())
    EXPECT_TRUE(option.key == "job.config_file" || get(option, a) == get(option, b)) << option.key;
}

TEST(Resolve, WithoutArgumentsIsTheDefaults) {
  const Resolved resolved = resolve({});
  expect_same(resolved.job, JobConfig{});
  EXPECT_EQ(resolved.origin("training.steps"), "default");
  EXPECT_THAT(resolved.warnings, IsEmpty());
}

TEST(Resolve, FlagsWinOverTheFileOverDefaults) {
  const JobFile file("[training]\nsteps = 7\nseq_len = 64\n");
  const Resolved resolved = resolve({"--training.steps", "9", file.path()});
  EXPECT_EQ(resolved.job.training.steps, 9);
  EXPECT_EQ(resolved.job.training.seq_len, 64);
  EXPECT_EQ(resolved.origin("training.steps"), "command line");
  EXPECT_EQ(resolved.origin("training.seq_len"), file.path() + ":3");
  EXPECT_EQ(resolved.origin("training.max_norm"), "default");
  EXPECT_EQ(resolved.job.job.config_file, file.path());
}

TEST(Resolve, PathsOfARecordAreAbsolute) {
  const Resolved resolved =
      resolve({"--model.hf_assets_path", "tok", "--training.dataset_path", "./text/*.jsonl",
               "--checkpoint.initial_load_path", "/weights", "--job.dump_folder", "run"});
  const JobConfig job = resolved.with_absolute_paths().job;
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(job.model.hf_assets_path, here + "/tok");
  EXPECT_EQ(job.training.dataset_path, here + "/text/*.jsonl");
  EXPECT_EQ(job.checkpoint.initial_load_path, "/weights");
  EXPECT_EQ(job.job.dump_folder, here + "/run");
  EXPECT_EQ(job.validation.dataset_path, std::nullopt);
  EXPECT_EQ(resolve({}).with_absolute_paths().job.model.hf_assets_path,
            JobConfig{}.model.hf_assets_path)
      << "a default that nobody wrote stays";
}

TEST(Resolve, ConfigFileFlagIsThePositionalOne) {
  const JobFile file("[training]\nsteps = 300\n");
  for (const auto& args :
       std::vector<std::vector<std::string>>{{"--job.config_file", file.path()},
                                             {"--job.config-file=" + file.path()},
                                             {file.path(), "--job.config_file", file.path()}})
    EXPECT_EQ(resolve(args).job.training.steps, 300);
}

TEST(Resolve, AnotherModelIsRefusedOnce) {
  const JobFile file(
      "[model]\nname = 'flux'\nflavor = 'flux-dev'\n[training]\nimg_size = 256\ndataset = "
      "'cc12m'\n[encoder]\nx = 1\n");
  const std::string message = test::mistake({file.path()});
  EXPECT_THAT(message, StartsWith(file.at(2) +
                                  "1: model.name = \"flux\" is not supported: it makes images."));
  EXPECT_THAT(message, Not(HasSubstr("img_size")));
  EXPECT_THAT(unsupported({"--training.dataset_path", "x", "--model.name", "lama3"})[0].text,
              HasSubstr("did you mean 'llama3'?"));
}

TEST(Resolve, ValidationSharesTrainingsSizes) {
  const Resolved r = resolve(
      {"--validation.enable", "--training.seq_len", "64", "--training.local_batch_size", "3"});
  EXPECT_EQ(r.job.validation.seq_len, 64);
  EXPECT_EQ(r.job.validation.local_batch_size, 3);
  EXPECT_EQ(r.origin("validation.seq_len"), "training.seq_len");
  EXPECT_EQ(resolve({"--validation.enable", "--validation.seq_len", "16"}).job.validation.seq_len,
            16);
  const Resolved off = resolve({"--training.seq_len", "64", "--training.local_batch_size", "3"});
  EXPECT_EQ(off.job.validation.seq_len, 64);
  EXPECT_EQ(off.job.validation.local_batch_size, 3);
  const JobFile record(off.to_toml());
  EXPECT_EQ(resolve({record.path(), "--validation.enable"}).job.validation.seq_len, 64);
}

/// Where a value came from is a comment in the record of a run.
TEST(Resolve, AFileNameWithALineBreakLeavesTheRecordReadable) {
  const tessera::test::TemporaryFolder folder;
  const auto file = folder.file("a\nb.toml", "[training]\nseq_len = 64\n");
  const JobFile record(resolve({file.string()}).to_toml());
  EXPECT_EQ(resolve({record.path()}).job.training.seq_len, 64);
}

TEST(Resolve, MicrobatchesMayChange) {
  const auto steps_of = [](const std::string& steps) {
    return resolve({"--parallelism.pipeline_parallel_degree", "2",
                    "--parallelism.pipeline_parallel_microbatch_steps", steps})
        .job.parallelism.pipeline_parallel_microbatch_steps;
  };
  EXPECT_EQ(steps_of("3:2,10:4"), (Strings{"3:2", "10:4"}));
  for (const char* wrong : {"3", "3:", ":2", "3:0", "-1:2", "3:2x", "10:4,3:2", "3:2,3:4"})
    EXPECT_THROW(steps_of(wrong), Error) << wrong;
}

TEST(Resolve, WarnsOnlyOfWhatIsNotActedOn) {
  EXPECT_THAT(resolve({"--compile.no_enable", "--activation_checkpoint.mode", "full",
                       "--parallelism.pipeline_parallel_degree", "2",
                       "--parallelism.pipeline_parallel_schedule", "gpipe"})
                  .warnings,
              IsEmpty());
  const auto warnings =
      resolve({"--compile.enable", "--compile.backend", "eager", "--training.gc_freq", "10"})
          .warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("compile.backend = \"eager\" (command line)"));
  EXPECT_THAT(warnings[0], HasSubstr("\n  training.gc_freq = 10 (command line)"));
}

TEST(Resolve, SaysNothingOfKeysBesideFeaturesThatAreOff) {
  EXPECT_THAT(resolve({"--compile.backend", "eager", "--profiling.profile_freq", "5"}).warnings,
              IsEmpty());
  const std::vector<std::string> ptrr{"--parallelism.context_parallel_load_balancer", "ptrr",
                                      "--training.dataset_path", "x"};
  EXPECT_THAT(unsupported(ptrr), IsEmpty());
  std::vector<std::string> with_context = ptrr;
  with_context.insert(with_context.end(), {"--parallelism.context_parallel_degree", "8"});
  ASSERT_EQ(unsupported(with_context).size(), 1u);
  EXPECT_THAT(unsupported(with_context)[0].text, HasSubstr("ptrr"));
}

TEST(Resolve, RefusesRunsThatWouldMeanSomethingElse) {
  EXPECT_THAT(unsupported({"--training.dataset_path", "x"}), IsEmpty());
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--parallelism.context_parallel_degree", "2",
                                 "--parallelism.context_parallel_load_balancer", "ptrr"},
        {"--model.name", "lama3"},
        {"--comm.mode", "fake_backend"},
        {"--model.print_after_conversion", "true"},
        {"--optimizer.early_step_in_backward", "true"},
        {"--memory_estimation.enable", "true"},
        {"--fault_tolerance.enable", "true"}}) {
    std::vector<std::string> all = args;
    all.insert(all.end(), {"--training.dataset_path", "x"});
    const auto reasons = unsupported(all);
    ASSERT_EQ(reasons.size(), 1u) << args[0];
    EXPECT_THAT(reasons[0].text, HasSubstr(args[args.size() - 2].substr(2)));
    EXPECT_EQ(reasons[0].place.exact(), args[args.size() - 2]);
  }
}

TEST(Resolve, DerivesWhatOneKeyGivesToAnother) {
  const Resolved r = resolve(
      {"--training.dtype", "float64", "--training.steps", "10", "--model.tokenizer_path", "tok"});
  EXPECT_EQ(r.job.training.mixed_precision_param, "float64");
  EXPECT_EQ(r.job.training.mixed_precision_reduce, "float64");
  EXPECT_EQ(r.origin("training.mixed_precision_param"), "training.dtype");
  EXPECT_EQ(r.job.lr_scheduler.warmup_steps, 10);
  EXPECT_EQ(r.origin("lr_scheduler.warmup_steps"), "training.steps");
  EXPECT_EQ(r.job.model.hf_assets_path, "tok");
}

/// As TorchTitan's attention of these flavors.
TEST(Resolve, MasksDocumentsAsTheFlavorDoes) {
  const auto masks = [](const Strings& flags) { return resolve(flags).job.training.document_mask; };
  const Strings deepseek{"--model.name", "deepseek_v3", "--model.flavor", "16B"};
  EXPECT_FALSE(masks({"--model.flavor", "8B"}));
  EXPECT_TRUE(masks({"--model.flavor", "8B_flex"}));
  EXPECT_TRUE(masks({"--model.flavor", "debugmodel_varlen_attn"}));
  EXPECT_TRUE(masks(deepseek));
  EXPECT_FALSE(masks({"--model.name", "deepseek_v3", "--model.flavor", "debugmodel"}));
  EXPECT_EQ(resolve(deepseek).origin("training.document_mask"), "model.flavor");
  EXPECT_FALSE(masks({"--model.name", "deepseek_v3", "--model.flavor", "16B",
                      "--training.document_mask", "false"}));
}

TEST(Resolve, WarnsOfMomentsThatFloat64Overrules) {
  const Resolved r =
      resolve({"--training.dtype", "float64", "--optimizer.moments_dtype", "bfloat16"});
  EXPECT_EQ(r.job.optimizer.moments_dtype, "auto");
  EXPECT_THAT(r.warnings, Contains(HasSubstr("optimizer.moments_dtype = \"bfloat16\"")));
}

/// A job in which every kind of value differs from its default.
Resolved unusual() {
  const JobFile file(
      "[job]\ndescription = \"quote \\\" and \\u00e9, back\\\\slash\\n\"\n[training]\nmax_norm = "
      "inf\n");
  return resolve({file.path(), "--optimizer.lr", "0.30000000000000004",
                  "--parallelism.context_parallel_load_balancer", "none", "--model.converters",
                  "a,b", "--parallelism.module_fqns_per_model_part", "a,b", "--compile.enable",
                  "--parallelism.tensor_parallel_degree", "2", "--lr_scheduler.decay_ratio", "0.1",
                  "--debug.seed", "9007199254740993"});
}

TEST(Resolved, SurvivesTheBroadcast) {
  const Resolved sent = unusual();
  const Resolved received = Resolved::deserialize(sent.serialize());
  expect_same(sent.job, received.job);
  EXPECT_EQ(sent.job.job.config_file, received.job.job.config_file);
  EXPECT_EQ(sent.origins, received.origins);
  EXPECT_EQ(sent.warnings, received.warnings);
  EXPECT_EQ(received.job.debug.seed, 9007199254740993);
}

TEST(Resolved, RefusesWhatItDidNotSend) {
  const std::string good = resolve({}).serialize();
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), good.substr(0, good.size() / 2)})
    EXPECT_THROW(Resolved::deserialize(text), Error);
}

TEST(Resolved, PrintsAJobThatReadsBack) {
  const Resolved first = unusual();
  const JobFile file(first.to_toml());
  expect_same(first.job, resolve({file.path()}).job);
  EXPECT_THAT(first.to_toml(), HasSubstr("# command line\n"));
  EXPECT_THAT(first.to_toml(), HasSubstr(".toml:4\n"));
}

TEST(Resolved, PrintsEveryKey) {
  const std::string text = resolve({}).to_toml();
  for (const Option& option : options())
    EXPECT_THAT(text, HasSubstr(std::string(leaf_of(option.key)) + " = "));
}

}  // namespace
}  // namespace tessera::config
