// SPDX-License-Identifier: Apache-2.0
#include "sections.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/config/recorded.hpp"

namespace tessera::plan {
namespace {

namespace fs = std::filesystem;

DType type_named(const std::string& name) {
  const auto type = dtype_from_name(name);
  TESSERA_EXPECT(type, "no type is called {}", name);
  return *type;
}

template <class Enum>
Enum named(const std::string& name,
           std::initializer_list<std::pair<std::string_view, Enum>> values) {
  for (const auto& [text, value] : values)
    if (text == name) return value;
  contract_violated("name", __FILE__, __LINE__, name);
}

MetricsPlan metrics_plan(const config::JobConfig& job) {
  const config::Metrics& m = job.metrics;
  MetricsPlan plan;
  plan.log_freq = m.log_freq;
  plan.color = !m.disable_color_printing;
  plan.tensorboard = m.enable_tensorboard;
  plan.every_rank = m.save_for_all_ranks;
  plan.tensorboard_folder = fs::path(job.job.dump_folder) / m.save_tb_folder;
  plan.peak_flops = m.peak_flops;
  return plan;
}

}  // namespace

RunPlan run_plan(const config::Resolved& resolved) {
  const config::JobConfig& job = resolved.job;
  RunPlan plan;
  plan.folder = job.job.dump_folder;
  plan.steps = job.training.steps;
  plan.seed = static_cast<std::uint64_t>(job.debug.seed);
  plan.toml = resolved.to_toml();
  plan.absolute_toml = resolved.with_absolute_paths().to_toml();
  plan.prints_job = job.job.print_config;
  if (job.job.save_config_file) plan.job_file = plan.folder / *job.job.save_config_file;
  if (job.debug.dump_gradients)
    plan.gradients_file = fs::path(*job.debug.dump_gradients) / "gradients.safetensors";
  plan.metrics = metrics_plan(job);
  const config::Profiling& p = job.profiling;
  if (p.enable_profiling)
    plan.trace = {plan.folder / p.save_traces_folder, p.profile_freq, p.profiler_active};
  if (p.enable_memory_snapshot)
    plan.memory_snapshot = {plan.folder / p.save_memory_snapshot_folder, p.profile_freq};
  return plan;
}

DevicePlan device_plan(const config::JobConfig& job) {
  using enum DeviceChoice;
  return {named<DeviceChoice>(job.job.device, {{"auto", automatic}, {"cuda", cuda}, {"cpu", cpu}}),
          job.job.share_device,
          job.compile.enable &&
              std::ranges::find(job.compile.components, "model") != job.compile.components.end(),
          job.kernels.backend};
}

CommPlan comm_plan(const config::JobConfig& job) {
  using enum BackendChoice;
  const config::Comm& c = job.comm;
  CommPlan plan;
  plan.backend = named<BackendChoice>(
      c.backend, {{"auto", automatic}, {"mpi", mpi}, {"strict", strict}, {"nccl", nccl}});
  plan.init_timeout_seconds = c.init_timeout_seconds;
  plan.train_timeout_seconds = c.train_timeout_seconds;
  plan.save_timeout_seconds = c.save_timeout_seconds;
  plan.check_collectives = job.debug.check_collectives;
  plan.traced_calls = c.trace_buf_size;
  plan.traces_folder = fs::path(job.job.dump_folder) / c.save_traces_folder;
  plan.traces_prefix = c.save_traces_file_prefix;
  return plan;
}

PrecisionPlan precision_plan(const config::Training& training) {
  const DType master = type_named(training.dtype);
  if (master == DType::f64) return {master, master, master};
  return {master, type_named(training.mixed_precision_param),
          type_named(training.mixed_precision_reduce)};
}

ArithmeticPlan arithmetic_plan(const config::JobConfig& job) {
  return {job.training.allow_tf32, job.training.allow_bf16_reduced_precision_reduction,
          job.debug.deterministic, job.debug.deterministic_warn_only};
}

ShardingPlan sharding_plan(const config::JobConfig& job) {
  using enum Accumulation;
  const config::Parallelism& p = job.parallelism;
  ShardingPlan plan;
  plan.reshard = ReshardPolicy::parse(p.fsdp_reshard_after_forward).value();
  for (const config::Strings& rule : p.reshard_rules)
    plan.reshard_rules.push_back({rule[0], ReshardPolicy::parse(rule[1]).value()});
  plan.prefetch_units = static_cast<int>(std::min<std::int64_t>(p.fsdp_prefetch_units, 1 << 20));
  plan.register_buffers = p.fsdp_register_buffers;
  plan.accumulation =
      named<Accumulation>(p.fsdp_gradient_accumulation,
                          {{"default", standard}, {"unsharded", unsharded}, {"sharded", sharded}});
  plan.deterministic = job.debug.deterministic;
  plan.freeze = job.training.freeze;
  plan.offload = job.training.enable_cpu_offload;
  return plan;
}

TensorParallelPlan tensor_parallel_plan(const config::JobConfig& job) {
  const config::Parallelism& p = job.parallelism;
  TensorParallelPlan plan;
  plan.sequence_parallel = !p.disable_sequence_parallel;
  plan.loss_parallel = !p.disable_loss_parallel;
  // In deterministic mode both ways cut products at the same rows, so that both have the same bits.
  // The scales of rounded products need all tokens at once.
  const bool chunks = p.enable_async_tensor_parallel || job.debug.deterministic;
  if (chunks && plan.sequence_parallel && !linear_precision(job).rounds())
    plan.token_chunks = static_cast<int>(p.async_tensor_parallel_chunks);
  plan.overlap_chunks = p.enable_async_tensor_parallel;
  return plan;
}

FusedLoss fused_loss(const config::JobConfig& job) {
  using enum FusedLoss;
  const config::Parallelism& p = job.parallelism;
  if (p.disable_loss_parallel && p.tensor_parallel_degree != 1) return never;
  if (linear_precision(job).rounds(kOutputLayer)) return never;
  return named<FusedLoss>(job.training.fused_linear_cross_entropy,
                          {{"auto", automatic}, {"always", always}, {"never", never}});
}

namespace {

RecomputePolicy policy_of_mode(const config::ActivationCheckpoint& wanted) {
  using Kind = RecomputePolicy::Kind;
  const std::vector<std::string>& products = wanted.per_op_sac_force_recompute_mm_shapes_by_fqns;
  if (wanted.mode == "full") return {Kind::every, 1, 0};
  if (wanted.mode == "memory_budget") return {Kind::budget, 1, wanted.memory_budget, products};
  if (wanted.mode != "selective") return {};
  if (wanted.selective_ac_option == "op") return {Kind::operations, 1, 0, products};
  return {Kind::every, std::stoll(wanted.selective_ac_option), 0};
}

}  // namespace

RecomputePolicy recompute_policy(const config::ActivationCheckpoint& wanted) {
  RecomputePolicy policy = policy_of_mode(wanted);
  policy.offload = wanted.offload;
  return policy;
}

OptimizerPlan optimizer_plan(const config::JobConfig& job) {
  const config::Optimizer& o = job.optimizer;
  const config::LrScheduler& s = job.lr_scheduler;
  OptimizerPlan plan{.lr = o.lr,
                     .beta1 = o.beta1,
                     .beta2 = o.beta2,
                     .eps = o.eps,
                     .weight_decay = o.weight_decay,
                     .coupled_decay = o.name == "Adam",
                     .max_norm = job.training.max_norm};
  plan.moments = type_named(job.training.dtype);
  if (plan.moments != DType::f64 && o.moments_dtype != "auto")
    plan.moments = type_named(o.moments_dtype);
  if (o.stochastic_rounding) plan.rounding_seed = static_cast<std::uint64_t>(job.debug.seed);
  plan.schedule.warmup_steps = s.warmup_steps;
  plan.schedule.total_steps = s.total_steps.value_or(job.training.steps);
  plan.schedule.decay_ratio = s.decay_ratio;
  plan.schedule.decay = named<Decay>(
      s.decay_type, {{"linear", Decay::linear}, {"sqrt", Decay::sqrt}, {"cosine", Decay::cosine}});
  plan.schedule.min_lr_factor = s.min_lr_factor;
  plan.schedule.own_length = s.total_steps.has_value();
  return plan;
}

std::optional<LearningRatePlan> recorded_learning_rate(std::string_view toml,
                                                       const LearningRatePlan& now) {
  config::JobConfig then;
  for (const char* key : {"training.steps", "lr_scheduler.warmup_steps", "lr_scheduler.total_steps",
                          "lr_scheduler.decay_ratio"}) {
    const config::Option& option = *config::find_option(key);
    const auto text = config::recorded(toml, key);
    if (assign(option, then, text ? value_from_text(option, *text) : config::Value()))
      return std::nullopt;
  }
  if (then.lr_scheduler.decay_ratio != now.decay_ratio) return std::nullopt;
  LearningRatePlan plan = now;
  plan.warmup_steps = then.lr_scheduler.warmup_steps;
  plan.total_steps = then.lr_scheduler.total_steps.value_or(then.training.steps);
  plan.own_length = then.lr_scheduler.total_steps.has_value();
  return plan;
}

LoadPlan load_plan(const config::Resolved& resolved, const model::ModelSpec& model) {
  const config::Checkpoint& c = resolved.job.checkpoint;
  LoadPlan plan{WeightOrigins::of(resolved), LoadChoice::of_own(c, model),
                LoadChoice::of(c, model)};
  plan.initial.saves = false;
  return plan;
}

SavePlan save_plan(const config::Checkpoint& c) {
  SavePlan plan;
  plan.enabled = c.enable && !c.load_only;
  plan.interval = c.interval;
  plan.mtbf_hours = c.mtbf_hours;
  plan.first_step = c.enable_first_step_checkpoint;
  plan.seed_only = c.create_seed_checkpoint;
  plan.last_model_only = c.last_save_model_only;
  plan.last_in_hf = c.last_save_in_hf;
  plan.export_dtype = type_named(c.export_dtype);
  plan.waits = c.async_mode == "disabled";
  plan.keep_latest_k = static_cast<int>(c.keep_latest_k);
  plan.keep_every = c.keep_every;
  plan.files = named<ShardFiles>(c.files, {{"rank", ShardFiles::one_per_rank},
                                           {"node", ShardFiles::one_per_node},
                                           {"single", ShardFiles::single}});
  return plan;
}

}  // namespace tessera::plan
