// SPDX-License-Identifier: Apache-2.0
// What flags and files may look like.
#include <gmock/gmock.h>

#include <cmath>

#include "config_files.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/config/resolve.hpp"

namespace tessera::config {
namespace {

using test::JobFile;
using test::unsupported;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

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

Strings excluded_by(const std::string& text) {
  return resolve({"--checkpoint.exclude_from_loading", text}).job.checkpoint.exclude_from_loading;
}

TEST(Resolve, ReadsListsInTomlFromFlags) {
  EXPECT_EQ(excluded_by(R"(["dataloader"])"), Strings{"dataloader"});
  EXPECT_EQ(excluded_by(R"([ "a{1,2}", 'layers[.]0', ])"), (Strings{"a{1,2}", "layers[.]0"}));
  EXPECT_EQ(excluded_by("[]"), Strings{});
  EXPECT_EQ(excluded_by(R"( ["a"] )"), Strings{"a"});
  // Two patterns, not a list.
  EXPECT_EQ(excluded_by("[wv]q,layers.[01]"), (Strings{"[wv]q", "layers.[01]"}));
  const auto stages = [](const std::string& text) {
    return resolve({"--parallelism.module_fqns_per_model_part", text})
        .job.parallelism.module_fqns_per_model_part;
  };
  EXPECT_EQ(stages(R"([["a", "b"], ["c"]])"), (std::vector<Strings>{{"a", "b"}, {"c"}}));
  EXPECT_EQ(stages("[]"), std::vector<Strings>{});
}

TEST(Resolve, RefusesListsThatAreNone) {
  for (const char* text :
       {"[dataloader]", "[dataloader,optimizer]", R"(["dataloader", 3])", R"([["dataloader"]])",
        R"(["a"] = "b"])", "[1]", R"(["a", [b]])", "[[a],[b]"})
    EXPECT_THAT([&] { excluded_by(text); },
                testing::ThrowsMessage<Error>(HasSubstr(
                    R"(must be a list of strings (["a", "b"], or a,b as a flag), not a )")))
        << text;
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
  EXPECT_EQ(b.warnings.size(), 0u);
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
early_stop = true
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
  EXPECT_THAT(
      message_of(job.problems),
      HasSubstr(file.at(55) + "1: activation_checkpoint.early_stop = true is not supported"));
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
  EXPECT_TRUE(resolve({"--quantize.dense.float8.enable"}).job.quantize.linear.float8.enable);
}

}  // namespace
}  // namespace tessera::config
