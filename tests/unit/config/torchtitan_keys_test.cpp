// SPDX-License-Identifier: Apache-2.0
// Each of TorchTitan v0.2.2's 149 keys acts, is refused with a reason and what works instead, or is
// harmless.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config_files.hpp"
#include "tessera/config/document.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Row {
  std::string what, key, value;
  std::string file, text;  ///< of a key that acts: the test that shows it, and words of it
};

/// what | key | a value other than the default | file | text
constexpr const char* kRows = R"(
acts | job.config_file | job.toml | tests/cli/keys.test | --job.config_file
acts | job.dump_folder | out | tests/cli/train.test | --job.dump_folder
acts | job.description | text | tests/cli/effects.test | --job.description
acts | job.print_config | true | tests/cli/keys.test | print_config = true
acts | job.save_config_file | kept.toml | tests/cli/keys.test | save_config_file
refused | job.custom_config_module | my.keys
acts | profiling.enable_profiling | true | tests/cli/keys.test | enable_profiling = true
acts | profiling.save_traces_folder | traces | tests/cli/keys.test | outputs/traces
acts | profiling.profile_freq | 20 | tests/cli/keys.test | profile_freq
acts | profiling.profiler_active | 2 | tests/cli/keys.test | profiler_active
acts | profiling.profiler_warmup | 1 | tests/cli/keys.test | profiler_warmup
acts | profiling.enable_memory_snapshot | true | tests/cli/keys.test | enable_memory_snapshot = true
acts | profiling.save_memory_snapshot_folder | x | tests/cli/keys.test | outputs/memory
acts | metrics.log_freq | 1 | tests/cli/effects.test | --metrics.log_freq 3
acts | metrics.enable_tensorboard | true | tests/interchange/interchange_test.py | enable_tensorboard
acts | metrics.disable_color_printing | true | tests/cli/effects.test | --metrics.disable_color_printing
acts | metrics.save_tb_folder | tb2 | tests/interchange/interchange_test.py | save_tb_folder
acts | metrics.save_for_all_ranks | true | tests/interchange/interchange_test.py | save_for_all_ranks
refused | metrics.enable_wandb | true
acts | model.name | qwen3 | tests/unit/plan/planner_test.cpp | mixtral
acts | model.flavor | 8B | tests/unit/plan/planner_test.cpp | 405B
acts | model.hf_assets_path | tok | tests/cli/data_test.sh | model.hf_assets_path
acts | model.tokenizer_path | tok | tests/unit/config/resolve_test.cpp | model.tokenizer_path
acts | model.converters | float8 | tests/cli/float8.test | model.converters float8
refused | model.print_after_conversion | true
acts | optimizer.name | Adam | tests/cli/keys.test | optimizer.name
acts | optimizer.lr | 1e-3 | tests/jobs/jobs_test.sh | optimizer.lr
acts | optimizer.beta1 | 0.8 | tests/cli/effects.test | --optimizer.beta1 0.5
acts | optimizer.beta2 | 0.9 | tests/cli/effects.test | --optimizer.beta2 0.5
acts | optimizer.eps | 1e-6 | tests/cli/effects.test | --optimizer.eps 1
acts | optimizer.weight_decay | 0.2 | tests/cli/effects.test | --optimizer.weight_decay 0.5
harmless | optimizer.implementation | foreach
refused | optimizer.early_step_in_backward | true
acts | lr_scheduler.warmup_steps | 3 | tests/cli/partial_load_test.sh | lr_scheduler.warmup_steps
acts | lr_scheduler.total_steps | 20000 | tests/cli/kills_test.sh | lr_scheduler.total_steps
acts | lr_scheduler.decay_ratio | 0.5 | tests/cli/keys.test | decay_ratio
acts | lr_scheduler.decay_type | cosine | tests/cli/keys.test | decay_type
acts | lr_scheduler.min_lr_factor | 0.25 | tests/cli/keys.test | min_lr_factor
acts | training.dataset | text | tests/unit/config/datasets_test.cpp | training.dataset
acts | training.dataset_path | x | tests/unit/config/datasets_test.cpp | dataset_path
acts | training.local_batch_size | 4 | tests/unit/plan/batch_plan_test.cpp | local_batch_size
acts | training.global_batch_size | 16 | tests/unit/plan/batch_plan_test.cpp | global_batch_size
acts | training.seq_len | 128 | tests/unit/plan/batch_plan_test.cpp | seq_len
acts | training.max_norm | 0.5 | tests/cli/effects.test | --training.max_norm 1e-3
acts | training.steps | 20 | tests/cli/keys.test | --training.steps
acts | training.enable_cpu_offload | true | tests/cli/keys.test | enable_cpu_offload
acts | training.dtype | bfloat16 | tests/mpi/train/bfloat16_weights_test.cpp | training.dtype
acts | training.mixed_precision_param | float32 | tests/cli/train.test | mixed_precision_param
acts | training.mixed_precision_reduce | bfloat16 | tests/unit/plan/job_plan_test.cpp | mixed_precision_reduce
harmless | training.gc_freq | 10
refused | training.gc_debug | true
acts | training.dataloader.num_workers | 2 | tests/unit/plan/job_plan_test.cpp | num_workers
harmless | training.dataloader.persistent_workers | true
acts | training.dataloader.pin_memory | true | tests/unit/plan/batch_plan_test.cpp | pin_memory
acts | training.dataloader.prefetch_factor | 3 | tests/unit/plan/job_plan_test.cpp | prefetch_factor
acts | parallelism.data_parallel_replicate_degree | 2 | tests/cli/faults_test.sh | data_parallel_replicate_degree
acts | parallelism.data_parallel_shard_degree | 2 | tests/cli/faults_test.sh | data_parallel_shard_degree
acts | parallelism.fsdp_reshard_after_forward | always | tests/mpi/train/gradient_case.cpp | fsdp_reshard_after_forward
acts | parallelism.tensor_parallel_degree | 2 | tests/cli/train.test | tensor_parallel_degree
acts | parallelism.disable_loss_parallel | true | tests/mpi/train/gradient_case.cpp | disable_loss_parallel
acts | parallelism.enable_async_tensor_parallel | true | tests/mpi/golden/golden_test.cpp | enable_async_tensor_parallel
acts | parallelism.pipeline_parallel_degree | 2 | tests/unit/plan/pipeline_plan_test.cpp | pipeline_parallel_degree
acts | parallelism.module_fqns_per_model_part | a;b | tests/unit/plan/model_fit_test.cpp | module_fqns_per_model_part
acts | parallelism.pipeline_parallel_first_stage_less_layers | 0 | tests/cli/mismatch_test.sh | first_stage_less_layers
acts | parallelism.pipeline_parallel_last_stage_less_layers | 0 | tests/cli/mismatch_test.sh | last_stage_less_layers
acts | parallelism.pipeline_parallel_layers_per_stage | 2 | tests/unit/plan/pipeline_plan_test.cpp | layers_per_stage
acts | parallelism.pipeline_parallel_schedule | GPipe | tests/unit/plan/pipeline_plan_test.cpp | Interleaved1F1B
acts | parallelism.pipeline_parallel_schedule_csv | x.csv | tests/unit/plan/pipeline_plan_test.cpp | schedule_csv
acts | parallelism.pipeline_parallel_microbatch_size | 2 | tests/unit/plan/pipeline_plan_test.cpp | microbatch_size
acts | parallelism.pipeline_parallel_expert_parallel_overlap | false | tests/unit/plan/pipeline_plan_test.cpp | expert_parallel_overlap
acts | parallelism.context_parallel_degree | 2 | tests/cli/mismatch_test.sh | context_parallel_degree
acts | parallelism.context_parallel_load_balancer | none | tests/unit/plan/batch_plan_test.cpp | load_balancer.reset
acts | parallelism.context_parallel_rotate_method | alltoall | tests/mpi/golden/golden_test.cpp | rotate_method
acts | parallelism.expert_parallel_degree | 2 | tests/unit/plan/model_fit_test.cpp | expert_parallel_degree
acts | parallelism.expert_tensor_parallel_degree | 1 | tests/cli/meshes_test.sh | expert_tensor_parallel_degree
acts | parallelism.expert_parallel_comm_backend | deepep | tests/cli/experts.test | expert_parallel_comm_backend deepep
acts | checkpoint.enable | true | tests/cli/keys.test | enable = true
refused | checkpoint.enable_ft_dataloader_checkpoints | false
acts | checkpoint.folder | saved | tests/cli/keys.test | folder = "saved"
acts | checkpoint.interval | 7 | tests/cli/soak_test.sh | checkpoint.interval
acts | checkpoint.initial_load_path | x | tests/cli/keys.test | checkpoint.initial_load_path
acts | checkpoint.initial_load_model_only | false | tests/cli/partial_load_test.sh | initial_load_model_only
acts | checkpoint.initial_load_in_hf | true | tests/cli/keys.test | checkpoint.initial_load_in_hf
acts | checkpoint.initial_load_in_hf_quantized | true | tests/unit/train/hf_import_test.cpp | initial_load_in_hf_quantized
acts | checkpoint.last_save_model_only | true | tests/cli/keys.test | last_save_model_only
acts | checkpoint.last_save_in_hf | true | tests/cli/keys.test | last_save_in_hf
acts | checkpoint.export_dtype | bfloat16 | tests/cli/keys.test | export_dtype
acts | checkpoint.async_mode | async | tests/cli/async_save_test.sh | checkpoint.async_mode
acts | checkpoint.keep_latest_k | 3 | tests/cli/life_cycle_test.sh | checkpoint.keep_latest_k
acts | checkpoint.load_step | 3 | tests/cli/partial_load_test.sh | checkpoint.load_step
acts | checkpoint.exclude_from_loading | optimizer | tests/unit/plan/load_choice_test.cpp | exclude_from_loading
acts | checkpoint.enable_first_step_checkpoint | true | tests/cli/keys.test | enable_first_step_checkpoint
acts | checkpoint.create_seed_checkpoint | true | tests/cli/keys.test | create_seed_checkpoint
acts | checkpoint.load_only | true | tests/cli/partial_load_test.sh | checkpoint.load_only
acts | activation_checkpoint.mode | full | tests/mpi/golden/golden_test.cpp | activation_checkpoint.mode
acts | activation_checkpoint.selective_ac_option | op | tests/mpi/golden/golden_test.cpp | selective_ac_option
acts | activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns | x | tests/mpi/train/gradient_case.cpp | per_op_sac_force_recompute_mm_shapes_by_fqns
refused | activation_checkpoint.early_stop | true
acts | activation_checkpoint.memory_budget | 0.2 | tests/cli/effects.test | --activation_checkpoint.memory_budget $1
refused | activation_checkpoint.visualize_memory_budget_pareto | true
harmless | activation_checkpoint.preserve_rng_state | false
refused | activation_checkpoint.determinism_check | throw
refused | activation_checkpoint.debug | true
acts | compile.enable | true | tests/sim/graphs_test.sh | --compile.enable
acts | compile.components | loss | tests/sim/graphs_test.sh | --compile.components
harmless | compile.backend | eager
acts | quantize.linear.float8.enable_fsdp_float8_all_gather | true | tests/sim/float8_test.sh | --quantize.linear.float8.enable_fsdp_float8_all_gather
harmless | quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp | true
acts | quantize.linear.float8.recipe_name | rowwise | tests/cli/float8.test | recipe_name rowwise
acts | quantize.linear.float8.filter_fqns | output | tests/cli/float8.test | filter_fqns output
acts | quantize.linear.float8.emulate | true | tests/sim/float8_test.sh | --quantize.linear.float8.emulate
harmless | quantize.linear.mx.mxfp8_dim1_cast_kernel_choice | cuda
acts | quantize.linear.mx.recipe_name | mxfp8_cublas_rceil | tests/cli/float8.test | recipe_name mxfp8_cublas_rceil
acts | quantize.linear.mx.filter_fqns | attention | tests/cli/float8.test | filter_fqns attention
acts | quantize.grouped_mm.float8.fqns | experts | tests/cli/experts.test | quantize.grouped_mm.float8.fqns experts
acts | quantize.grouped_mm.mx.recipe_name | mxfp8 | tests/cli/experts.test | quantize.grouped_mm.mx.recipe_name mxfp8
acts | quantize.grouped_mm.mx.fqns | experts | tests/cli/experts.test | quantize.grouped_mm.mx.fqns experts
acts | comm.init_timeout_seconds | 60 | tests/cli/hangs_test.sh | init_timeout_seconds
acts | comm.train_timeout_seconds | 60 | tests/cli/faults_test.sh | train_timeout_seconds
acts | comm.trace_buf_size | 50 | tests/cli/hangs_test.sh | trace_buf_size
acts | comm.save_traces_folder | hangs | tests/cli/hangs_test.sh | traces/call_of_
acts | comm.save_traces_file_prefix | r | tests/cli/hangs_test.sh | traces/call_of_
refused | comm.mode | fake_backend
refused | memory_estimation.enable | true
refused | memory_estimation.disable_fake_mode | true
refused | fault_tolerance.enable | true
refused | fault_tolerance.process_group | nccl
refused | fault_tolerance.process_group_timeout_ms | 5
refused | fault_tolerance.replica_id | 1
refused | fault_tolerance.group_size | 2
refused | fault_tolerance.min_replica_size | 2
refused | fault_tolerance.semi_sync_method | diloco
refused | experimental.custom_import | my.module
refused | experimental.custom_args_module | my.keys
acts | validation.enable | true | tests/cli/data_test.sh | validation.enable
acts | validation.dataset | text | tests/cli/data_test.sh | validation.dataset
acts | validation.dataset_path | x | tests/cli/data_test.sh | validation.dataset_path
acts | validation.local_batch_size | 4 | tests/mpi/train/validator_test.cpp | local_batch_size
acts | validation.seq_len | 64 | tests/mpi/train/validator_test.cpp | seq_len
acts | validation.freq | 5 | tests/cli/data_test.sh | validation.freq
acts | validation.steps | 3 | tests/cli/effects.test | --validation.steps 2
acts | validation.dataloader.num_workers | 2 | tests/unit/plan/job_plan_test.cpp | --validation.dataloader.num_workers
harmless | validation.dataloader.persistent_workers | true
acts | validation.dataloader.pin_memory | true | tests/unit/plan/batch_plan_test.cpp | pin_memory
acts | validation.dataloader.prefetch_factor | 3 | tests/unit/plan/job_plan_test.cpp | --validation.dataloader.prefetch_factor
acts | debug.seed | 7 | tests/cli/effects.test | --debug.seed 7
acts | debug.deterministic | true | tests/mpi/train/gradient_case.cpp | deterministic
acts | debug.deterministic_warn_only | true | tests/unit/train/arithmetic_test.cpp | deterministic_warn_only
acts | debug.moe_force_load_balance | true | tests/unit/plan/model_fit_test.cpp | moe_force_load_balance
)";

std::vector<Row> rows() {
  std::vector<Row> all;
  std::istringstream lines(kRows);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> parts;
    for (std::size_t at = 0, end; !line.empty() && at != line.npos;
         at = end == line.npos ? end : end + 3) {
      end = line.find(" | ", at);
      parts.push_back(line.substr(at, end - at));
    }
    if (parts.empty()) continue;
    parts.resize(5);
    all.push_back({parts[0], parts[1], parts[2], parts[3], parts[4]});
  }
  return all;
}

/// The job in which the row's key has its value, and what it belongs to is turned on.
Reading job_of(const Row& row) {
  if (row.key == "job.config_file")
    return read_job({"--training.dataset_path=x"});  // tests/cli/keys.test names one
  std::map<std::string, std::string> values{{row.key, row.value}};
  values.emplace("training.dataset_path", "x");
  const auto add = [&](const std::string& key, const char* value) { values.emplace(key, value); };
  const Option& option = *find_option(row.key);
  if (!option.under.empty()) {
    const Option& feature = *find_option(option.under);
    if (is_boolean(feature)) add(std::string(feature.key), "true");
    if (type_name(feature) == "integer") add(std::string(feature.key), "2");
  }
  const std::string section(section_of(row.key));
  if (section.starts_with("quantize.")) add("model.converters", section.c_str());
  if (section.ends_with("dataloader")) add(section + ".num_workers", "1");
  if (row.key == "validation.dataset") add("validation.dataset_path", "x");
  if (section.starts_with("validation") && !values.contains("validation.dataset_path"))
    add("validation.split", "0.1");
  if (row.key == "checkpoint.initial_load_model_only") add("checkpoint.initial_load_path", "x");
  if (row.key == "checkpoint.create_seed_checkpoint") add("checkpoint.enable", "true");
  if (row.key == "checkpoint.initial_load_in_hf_quantized")
    add("checkpoint.initial_load_in_hf", "true");
  if (section == "quantize.grouped_mm.mx") add("quantize.grouped_mm.mx.fqns", "experts");
  if (row.key == "parallelism.expert_tensor_parallel_degree")
    add("parallelism.tensor_parallel_degree", "2");
  std::vector<std::string> args;
  for (const auto& [key, value] : values) args.push_back("--" + key + "=" + value);
  Reading job = read_job(args);
  find_unsupported(job);
  return job;
}

std::string warnings_of(const Reading& job) {
  std::string all;
  for (const std::string& warning : job.resolved.warnings) all += warning + "\n";
  return all;
}

void expect_acts(const Row& row) {
  const Option& option = *find_option(row.key);
  const Reading job = job_of(row);
  EXPECT_EQ(message_of(job.problems), "0 problems in the configuration");
  EXPECT_THAT(warnings_of(job), Not(HasSubstr(row.key + " =")));
  if (row.key != "job.config_file") {
    JobConfig wanted;
    ASSERT_EQ(assign(option, wanted, value_from_text(option, row.value)), std::nullopt);
    EXPECT_EQ(to_text(get(option, job.resolved.job)), to_text(get(option, wanted)));
    // The recipe of experts has one value.
    if (row.key != "parallelism.expert_tensor_parallel_degree" &&
        row.key != "quantize.grouped_mm.mx.recipe_name") {
      EXPECT_NE(to_text(get(option, wanted)), to_text(default_of(option)));
    }
  }
  const std::filesystem::path file = std::filesystem::path(TESSERA_TEST_DATA) / "../.." / row.file;
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, HasSubstr(row.text)) << file;
}

/// The reason, and behind a semicolon what works instead.
void expect_refused(const Row& row) {
  const Option& option = *find_option(row.key);
  ASSERT_EQ(option.support, Support::refused);
  const Option& told = option.why.empty() ? *find_option(option.under) : option;
  EXPECT_THAT(std::string(told.why), testing::ContainsRegex(".{12,}; .{12,}"));
  const Reading job = job_of(row);
  ASSERT_EQ(job.problems.size(), 1u) << message_of(job.problems);
  EXPECT_THAT(message_of(job.problems), HasSubstr("--" + std::string(told.key) + ": "));
  EXPECT_THAT(message_of(job.problems), HasSubstr(std::string(told.why)));
}

void expect_harmless(const Row& row) {
  const Option& option = *find_option(row.key);
  ASSERT_EQ(option.support, Support::harmless);
  const Reading job = job_of(row);
  EXPECT_EQ(message_of(job.problems), "0 problems in the configuration");
  EXPECT_THAT(warnings_of(job), HasSubstr(row.key + " ="));
  EXPECT_THAT(warnings_of(job), HasSubstr(std::string(option.why)));
}

TEST(TorchTitanKeys, ActOrAreRefusedOrAreHarmless) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.key);
    ASSERT_TRUE(find_option(row.key));
    if (row.what == "acts") expect_acts(row);
    if (row.what == "refused") expect_refused(row);
    if (row.what == "harmless") expect_harmless(row);
  }
}

TEST(TorchTitanKeys, AreAll149) {
  std::ifstream file(TESSERA_TEST_DATA "/config/torchtitan_keys.json");
  const auto keys = nlohmann::json::parse(file);
  std::vector<std::string> walked;
  int harmless = 0;
  for (const Row& row : rows()) {
    walked.push_back(row.key);
    EXPECT_TRUE(keys.contains(row.key)) << row.key;
    EXPECT_THAT(row.what, testing::AnyOf("acts", "refused", "harmless"));
    harmless += row.what == "harmless";
  }
  std::ranges::sort(walked);
  EXPECT_EQ(std::ranges::adjacent_find(walked), walked.end());
  EXPECT_EQ(walked.size(), 149u);
  EXPECT_EQ(harmless, 8) << "README says how many";
}

/// The page for who comes from TorchTitan has the option table's own words.
TEST(TorchTitanKeys, ThePageIsTheTables) {
  std::ifstream file(TESSERA_TEST_DATA "/../../share/doc/tessera/from-torchtitan.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(page, HasSubstr(keys_as_markdown()))
      << "write `tessera config keys --markdown` into the page";
}

}  // namespace
}  // namespace tessera::config
