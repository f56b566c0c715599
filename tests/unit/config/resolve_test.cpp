// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/resolve.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "config_files.hpp"
#include "tessera/base/error.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::config {
namespace {

using test::JobFile;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

void expect_same(const JobConfig& a, const JobConfig& b) {
  for (const Option& option : options())
    EXPECT_TRUE(option.key == "job.config_file" || get(option, a) == get(option, b)) << option.key;
}

/// What keeps a job that reads well from being run.
std::vector<Problem> unsupported(const std::vector<std::string>& args) {
  Reading job = read_job(args);
  EXPECT_THAT(job.problems, IsEmpty());
  find_unsupported(job);
  return job.problems;
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

TEST(Resolve, ReadsEveryFormOfFlag) {
  const Resolved r = resolve({"--compile.enable",
                              "--checkpoint.no_initial_load_model_only",
                              "--training.seq-len=128",
                              "--debug.deterministic",
                              "true",
                              "--metrics.enable_wandb=false",
                              "--compile.components",
                              "model",
                              "--checkpoint.exclude_from_loading",
                              "optimizer,dataloader",
                              "--optimizer.lr",
                              "1e-3",
                              "--training.global_batch_size",
                              "-1",
                              "--parallelism.context_parallel_load_balancer",
                              "none",
                              "--parallelism.module_fqns_per_model_part",
                              "a,b;c",
                              "--training.max_norm",
                              "inf"});
  EXPECT_TRUE(r.job.compile.enable);
  EXPECT_FALSE(r.job.checkpoint.initial_load_model_only);
  EXPECT_EQ(r.job.training.seq_len, 128);
  EXPECT_TRUE(r.job.debug.deterministic);
  EXPECT_EQ(r.job.compile.components, Strings{"model"});
  EXPECT_EQ(r.job.checkpoint.exclude_from_loading, (Strings{"optimizer", "dataloader"}));
  EXPECT_EQ(r.job.optimizer.lr, 1e-3);
  EXPECT_EQ(r.job.parallelism.context_parallel_load_balancer, std::nullopt);
  EXPECT_EQ(r.job.parallelism.module_fqns_per_model_part,
            (std::vector<Strings>{{"a", "b"}, {"c"}}));
  EXPECT_TRUE(std::isinf(r.job.training.max_norm));
}

TEST(Resolve, ReadsEveryTypeFromAFile) {
  const JobFile file(
      "training.max_norm = 2\nquantize.dense.float8 = {enable = true, filter_fqns = ['output']}\n"
      "[parallelism]\nmodule_fqns_per_model_part = [['a', 'b'], ['c']]\nreshard_after_forward_mode "
      "= 'never'\n"
      "[lr_scheduler]\ndecay_ratio = 0.8\n[quantize.grouped_mm.mx]\nfqns = "
      "'experts,shared'\n[metrics]\npeak_flops = "
      "989e12\n");
  const Resolved r = resolve({file.path()});
  EXPECT_EQ(r.job.training.max_norm, 2.0);
  EXPECT_TRUE(r.job.quantize.linear.float8.enable);
  EXPECT_EQ(r.job.quantize.linear.float8.filter_fqns, Strings{"output"});
  EXPECT_EQ(r.job.parallelism.module_fqns_per_model_part,
            (std::vector<Strings>{{"a", "b"}, {"c"}}));
  EXPECT_EQ(r.job.parallelism.fsdp_reshard_after_forward, "never");
  EXPECT_EQ(r.job.lr_scheduler.decay_ratio, 0.8);
  EXPECT_EQ(r.job.quantize.grouped_mm.mx.fqns, (Strings{"experts", "shared"}));
  EXPECT_EQ(r.origin("quantize.dense.float8.enable"), file.path() + ":2");
}

TEST(Resolve, AcceptsThreeCommandLines) {
  const Resolved a = resolve({"--parallelism.data_parallel_shard_degree", "8", "--compile.enable",
                              "--quantize.dense.float8.enable"});
  EXPECT_TRUE(a.job.quantize.linear.float8.enable);
  const Resolved b = resolve({"--parallelism.data_parallel_shard_degree", "4",
                              "--parallelism.tensor_parallel_degree", "2",
                              "--parallelism.enable_async_tensor_parallel", "--compile.enable"});
  EXPECT_EQ(b.warnings.size(), 1u);
  const Resolved c = resolve(
      {"--parallelism.data_parallel_shard_degree", "8", "--parallelism.tensor_parallel_degree", "8",
       "--parallelism.pipeline_parallel_degree", "8", "--parallelism.pipeline_parallel_schedule",
       "interleave_1f1b", "--quantize.dense.float8.enable"});
  EXPECT_EQ(c.job.parallelism.pipeline_parallel_schedule, "Interleaved1F1B");
}

TEST(Resolve, AcceptsAWholeTorchTitanFile) {
  const JobFile file(R"([job]
dump_folder = "./out"
description = "a model of 8 billion parameters"
print_config = false
[profiling]
enable_profiling = true
save_traces_folder = "traces"
profile_freq = 100
enable_memory_snapshot = false
[metrics]
log_freq = 10
enable_tensorboard = true
save_tb_folder = "tb"
[model]
name = "llama3"
flavor = "8B"
hf_assets_path = "./assets"
converters = ["float8"]
[optimizer]
name = "AdamW"
lr = 3e-4
eps = 1e-8
[lr_scheduler]
warmup_steps = 20 # of 1000
decay_ratio = 0.8
decay_type = "cosine"
min_lr_factor = 0.0
[training]
local_batch_size = 1
seq_len = 8192
max_norm = 1.0
steps = 1000
dataset = "c4"
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
fsdp_reshard_after_forward = "default"
tensor_parallel_degree = 8
pipeline_parallel_degree = 1
pipeline_parallel_schedule = "Interleaved1F1B"
context_parallel_degree = 1
[checkpoint]
enable = false
folder = "checkpoint"
interval = 500
last_save_model_only = true
export_dtype = "bfloat16"
async_mode = "disabled"
[compile]
enable=false
components = ["model", "loss"]
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[quantize.linear.float8]
enable_fsdp_float8_all_gather = true
filter_fqns = ["output"]
[validation]
enable = false
freq = 500
steps = 1200
)");
  Reading job = read_job({file.path(), "--training.dataset_path", "x"});
  EXPECT_THAT(job.problems, IsEmpty());
  EXPECT_THAT(job.resolved.warnings, IsEmpty());
  find_unsupported(job);
  EXPECT_THAT(message_of(job.problems),
              HasSubstr(file.at(18) + "1: model.converters = [\"float8\"] is not supported"));
  // What is off, or not pipelined, is not worth a word.
  for (const char* key : {"validation", "pipeline_parallel_schedule", "filter_fqns",
                          "save_traces_folder", "compile", "tensorboard"})
    EXPECT_THAT(message_of(job.problems), Not(HasSubstr(key)));
}

TEST(Resolve, AStageMapIsAWordOrAList) {
  const auto map_of = [](const std::string& line) {
    const JobFile file(
        "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_stage_map = " + line +
        "\n");
    return resolve({file.path()}).job.parallelism.pipeline_parallel_stage_map;
  };
  EXPECT_EQ(map_of("[0, 1, 1, 0]"), "0,1,1,0");
  EXPECT_EQ(map_of("'v'"), "v");
  EXPECT_THROW(map_of("[0, 'a']"), Error);
}

TEST(Resolve, MixturesAreTablesOrAFlag) {
  const JobFile file(R"([training]
dataset = "tokens"
[[training.mixture]]
path = "web/*.tokens"
weight = 0.7
[[training.mixture]]
path = "books/"
weight = 1
name = "old books"
)");
  const Resolved r = resolve({file.path()});
  const auto& mixture = r.job.training.mixture;
  ASSERT_EQ(mixture.size(), 2u);
  const auto web = mixture_entry(mixture[0]), books = mixture_entry(mixture[1]);
  EXPECT_EQ(web->weight, 0.7);
  EXPECT_EQ(web->name, "web");
  EXPECT_EQ(books->weight, 1);
  EXPECT_EQ(books->name, "old books");
  EXPECT_EQ(mixture_entry({"books/", "2"})->name, "books");
  EXPECT_EQ(mixture_entry({"/data/books.tokens", "2"})->name, "books");
  const Resolved flags = resolve({"--training.mixture", "a.tokens,0.7;b.tokens,0.3,b"});
  EXPECT_EQ(flags.job.training.mixture,
            (std::vector<Strings>{{"a.tokens", "0.7"}, {"b.tokens", "0.3", "b"}}));
  const JobFile again(flags.to_toml());
  EXPECT_EQ(resolve({again.path()}).job.training.mixture, flags.job.training.mixture);
  EXPECT_THAT(unsupported({"--training.mixture", "a.tokens,0.7;b.tokens,0.3,b"}), IsEmpty());
}

TEST(Resolve, UnderstandsSpellingsOfGuides) {
  const auto policy = [](const std::string& flag) {
    return resolve({flag}).job.parallelism.fsdp_reshard_after_forward;
  };
  EXPECT_EQ(policy("--parallelism.fsdp_reshard_after_forward=ALWAYS"), "always");
  EXPECT_EQ(policy("--parallelism.fsdp_reshard_after_forward=true"), "always");
  EXPECT_EQ(policy("--parallelism.reshard_after_forward=False"), "never");
  EXPECT_EQ(policy("--parallelism.reshard_after_forward_mode=LAST_LAYER"), "last_layer");
  EXPECT_EQ(policy("--parallelism.reshard_after_forward=8"), "8");
  const JobFile file(
      "[parallelism]\nreshard_after_forward = false\n[training]\ndtype = 'BFloat16'\n");
  EXPECT_EQ(resolve({file.path()}).job.parallelism.fsdp_reshard_after_forward, "never");
  EXPECT_EQ(resolve({file.path()}).job.training.dtype, "bfloat16");
  const auto float8 =
      unsupported({"--training.dataset_path", "x", "--quantize.dense.float8.enable"});
  ASSERT_EQ(float8.size(), 1u);
  EXPECT_THAT(float8[0].text, HasSubstr("multiplies no matrices in float8; leave the key out"));
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
  const auto warnings = resolve({"--compile.enable", "--training.gc_freq", "10"}).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("compile.enable = true (command line)"));
  EXPECT_THAT(warnings[0], HasSubstr("\n  training.gc_freq = 10 (command line)"));
}

TEST(Resolve, SaysNothingOfKeysBesideFeaturesThatAreOff) {
  EXPECT_THAT(resolve({"--compile.components", "loss", "--profiling.profile_freq", "5"}).warnings,
              IsEmpty());
  const std::vector<std::string> deepep{"--parallelism.expert_parallel_comm_backend", "deepep",
                                        "--training.dataset_path", "x"};
  EXPECT_THAT(unsupported(deepep), IsEmpty());
  std::vector<std::string> with_experts = deepep;
  with_experts.insert(with_experts.end(), {"--parallelism.expert_parallel_degree", "8"});
  ASSERT_EQ(unsupported(with_experts).size(), 1u);
  EXPECT_THAT(unsupported(with_experts)[0].text, HasSubstr("DeepEP"));
}

TEST(Resolve, RefusesRunsThatWouldMeanSomethingElse) {
  EXPECT_THAT(unsupported({"--training.dataset_path", "x"}), IsEmpty());
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--parallelism.context_parallel_degree", "2",
                                 "--parallelism.context_parallel_load_balancer", "ptrr"},
        {"--optimizer.name", "Adam"},
        {"--model.name", "lama3"},
        {"--comm.mode", "fake_backend"},
        {"--model.converters", "float8"},
        {"--quantize.linear.float8.enable", "true"},
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
