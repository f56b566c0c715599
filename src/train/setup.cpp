// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/setup.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/hf/config.hpp"
#include "tessera/parallel/placement.hpp"
#include "tessera/parallel/stage_split.hpp"
#include "tessera/train/cores.hpp"

namespace tessera::train {
namespace {

using mesh::Axis;

at::ScalarType type_named(const std::string& name) {
  if (name == "float64") return at::kDouble;
  return name == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

void require_divides(std::int64_t value, const char* what, int degree, const char* key) {
  require(value % degree == 0, ExitCode::usage,
          "{} {} cannot be shared by {} {}; choose a divisor of {}", what, value, key, degree,
          value);
}

/// Where the degrees come from that ask for more than one rank: the others cannot be at fault.
std::string origins_of(const config::Resolved& resolved, const mesh::Degrees& degrees) {
  std::string origins;
  for (const auto& [degree, key] : {std::pair{degrees.pp, "pipeline_parallel_degree"},
                                    {degrees.dp_replicate, "data_parallel_replicate_degree"},
                                    {degrees.dp_shard, "data_parallel_shard_degree"},
                                    {degrees.cp, "context_parallel_degree"},
                                    {degrees.tp, "tensor_parallel_degree"},
                                    {degrees.ep, "expert_parallel_degree"},
                                    {degrees.etp, "expert_tensor_parallel_degree"}}) {
    const std::string origin = resolved.origin(std::string("parallelism.") + key);
    if (degree != 1 && degree != -1 && origin != "default")
      origins += fmt::format("\n  {}: parallelism.{}", origin, key);
  }
  return origins;
}

/// For a mesh that needs more ranks than there are: how to start them.
std::string more_ranks(const mesh::Degrees& degrees, int world) {
  std::int64_t ranks = 1;
  for (const int degree :
       {degrees.pp, degrees.dp_replicate, degrees.dp_shard, degrees.cp, degrees.tp})
    if (degree > 0 && ranks < 1'000'000) ranks *= degree;
  if (ranks <= world || ranks > 1'000'000) return "";
  return fmt::format(
      "; or start {}{} ranks: `tessera launch -n {} -- train ...`, `srun -n {} tessera train ...`",
      degrees.dp_shard == -1 ? "a multiple of " : "", ranks, ranks, ranks);
}

/// What tensor parallelism cuts can be cut in so many pieces. parallel::place() relies on it.
void check_pieces(const model::ModelSpec& model, int tp) {
  for (const model::ParamSpec& spec : model.params) {
    if (spec.max_pieces > 0 && spec.max_pieces < tp) continue;
    const int dim = parallel::tp_dimension(spec.placement);
    if (dim < 0 || model::counts_experts(spec.placement)) continue;
    const std::int64_t extent = spec.global_shape[static_cast<std::size_t>(dim)];
    require(extent % tp == 0, ExitCode::usage,
            "{} has {} rows or columns to share, which tensor_parallel_degree {} does not divide; "
            "choose a divisor of {}",
            spec.fqn, extent, tp, extent);
  }
}

}  // namespace

mesh::Degrees degrees_of(const config::Parallelism& p) {
  return {p.pipeline_parallel_degree,     p.data_parallel_replicate_degree,
          p.data_parallel_shard_degree,   p.context_parallel_degree,
          p.tensor_parallel_degree,       p.expert_parallel_degree,
          p.expert_tensor_parallel_degree};
}

mesh::Layout layout_of(const config::Resolved& resolved, int world) {
  const mesh::Degrees degrees = degrees_of(resolved.job.parallelism);
  try {
    return mesh::Layout::resolve(degrees, world);
  } catch (const Error& error) {
    throw Error(error.code(),
                error.what() + more_ranks(degrees, world) + origins_of(resolved, degrees));
  }
}

comm::Backend backend_of(const config::JobConfig& job, at::Device device) {
  const std::string& name = job.comm.backend;
  require(!(device.is_cpu() && name == "nccl"), ExitCode::environment,
          "comm.backend = \"nccl\" needs a GPU and a build with TESSERA_WITH_NCCL; this rank lacks "
          "at least one of "
          "them. Use auto or mpi");
  if (name == "strict") return comm::Backend::strict;
  return name == "mpi" || device.is_cpu() ? comm::Backend::mpi : comm::Backend::nccl;
}

bool wants_nccl(const config::JobConfig& job) {
  return job.comm.backend == "auto" || job.comm.backend == "nccl";
}

comm::Memory memory_of(at::Device device) {
  return device.is_cpu() ? comm::Memory::host : comm::Memory::device;
}

void use_share_of_cores(comm::World& world) {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int cores = cores_of_this_rank(world), wanted = text ? std::atoi(text) : 0;
  at::set_num_threads(wanted > 0 ? std::min(wanted, cores) : cores);
  const std::int64_t fewer = comm::all_reduce_scalar(world.control(), std::int64_t{wanted > cores});
  if (fewer > 0 && world.rank() == 0)
    log::warning(
        "OMP_NUM_THREADS exceeds the number of cores of {} of {} ranks; they start one thread for "
        "each core (rank 0: "
        "{} threads requested, {} cores)",
        fewer, world.size(), wanted, cores);
}

parallel::Precision precision_of(const config::JobConfig& job) {
  const auto master = type_named(job.training.dtype);
  if (master == at::kDouble) return {master, master, master};
  return {master, type_named(job.training.mixed_precision_param),
          type_named(job.training.mixed_precision_reduce)};
}

model::DecoderShape decoder_shape_of(const config::JobConfig& job, std::int64_t tokenizer_vocab) {
  model::DecoderShape shape =
      job.model.hf_config ? hf::read_config(*job.model.hf_config)
                          : model::decoder_flavor(job.model.name, shape_flavor(job.model.flavor));
  if (!job.model.hf_config && job.model.flavor.starts_with("debugmodel"))
    shape.vocab = std::max(shape.vocab, tokenizer_vocab);
  const config::Model& m = job.model;
  require(
      shape.mixture || (!m.moe_load_balance_coeff && !m.moe_aux_loss_coeff && !m.moe_z_loss_coeff),
      ExitCode::usage,
      "{} has no mixture of experts; remove model.moe_load_balance_coeff, moe_aux_loss_coeff and "
      "moe_z_loss_coeff",
      shape.name);
  if (!shape.mixture) return shape;
  shape.mixture->balance_rate = m.moe_load_balance_coeff.value_or(shape.mixture->balance_rate);
  shape.mixture->auxiliary = m.moe_aux_loss_coeff.value_or(shape.mixture->auxiliary);
  shape.mixture->z = m.moe_z_loss_coeff.value_or(0);
  shape.mixture->routing.forced_even = job.debug.moe_force_load_balance;
  return shape;
}

void check_vocabulary(std::int64_t tokenizer_vocab, const std::string& model,
                      std::int64_t model_vocab) {
  require(tokenizer_vocab <= model_vocab, ExitCode::data,
          "the tokenizer has {} tokens, {} only {}; use the model's own tokenizer", tokenizer_vocab,
          model, model_vocab);
}

model::Model model_of(const config::JobConfig& job, std::int64_t tokenizer_vocab,
                      std::int64_t positions, at::Device device) {
  const model::DecoderShape shape = decoder_shape_of(job, tokenizer_vocab);
  check_vocabulary(tokenizer_vocab, shape.name, shape.vocab);
  return model::make_decoder(shape, positions, precision_of(job).compute, device);
}

void check_tensor_parallel_fits(const model::ModelSpec& model, int tp) {
  const model::Dimensions& d = model.dimensions;
  require_divides(d.heads, "attention heads", tp, "tensor_parallel_degree");
  require(d.kv_heads % tp == 0 || tp % d.kv_heads == 0, ExitCode::usage,
          "key-value heads {} cannot be shared by tensor_parallel_degree {}; choose a divisor of "
          "{}, or a multiple "
          "that divides {} heads",
          d.kv_heads, tp, d.kv_heads, d.heads);
  require_divides(d.hidden, "feed-forward size", tp, "tensor_parallel_degree");
  require_divides(d.vocab, "vocabulary", tp, "tensor_parallel_degree");
  check_pieces(model, tp);
}

void check_experts_fit(const model::ModelSpec& model, const mesh::Layout& layout) {
  const int ep = layout.expert_degree();
  require((ep == 1 && !layout.experts_cut_by_tp()) || !model.mixtures.empty(), ExitCode::usage,
          "{} has no experts; set expert_parallel_degree and expert_tensor_parallel_degree to 1",
          model.name);
  for (const model::MixtureSpec& mixture : model.mixtures)
    require_divides(mixture.experts, "experts", ep, "expert_parallel_degree");
  if (!layout.experts_cut_by_tp()) return;
  for (const model::ParamSpec& spec : model.params)
    if (spec.placement == model::Placement::expert_column)
      require_divides(spec.global_shape[1], "features of an expert", layout.degree(Axis::tp),
                      "expert_tensor_parallel_degree");
}

void check_tokens_fit(const model::ModelSpec& model, const mesh::Layout& layout,
                      const BatchPlan& plan, bool sequence_parallel) {
  const bool routed = !model.mixtures.empty() && !layout.experts_cut_by_tp();
  if (sequence_parallel || routed)
    require_divides(plan.microbatch_rows * plan.cut.positions(),
                    sequence_parallel ? "tokens of a microbatch (sequence parallel)"
                                      : "tokens of a microbatch (each rank routes its own)",
                    layout.degree(Axis::tp), "tensor_parallel_degree");
}

void check_model_fits(const model::ModelSpec& model, const mesh::Layout& layout,
                      const BatchPlan& plan, bool sequence_parallel) {
  check_tensor_parallel_fits(model, layout.degree(Axis::tp));
  check_experts_fit(model, layout);
  check_tokens_fit(model, layout, plan, sequence_parallel);
}

namespace {

parallel::RecomputePolicy recompute_of(const config::ActivationCheckpoint& wanted) {
  using Kind = parallel::RecomputePolicy::Kind;
  const std::vector<std::string>& products = wanted.per_op_sac_force_recompute_mm_shapes_by_fqns;
  if (wanted.mode == "full") return {Kind::every, 1, 0};
  if (wanted.mode == "memory_budget") return {Kind::budget, 1, wanted.memory_budget, products};
  if (wanted.mode != "selective") return {};
  if (wanted.selective_ac_option == "op") return {Kind::operations, 1, 0, products};
  return {Kind::every, std::stoll(wanted.selective_ac_option), 0};
}

parallel::Accumulation accumulation_of(const std::string& name) {
  using enum parallel::Accumulation;
  return name == "sharded" ? sharded : name == "unsharded" ? unsharded : standard;
}

}  // namespace

bool weighs_memory(const config::JobConfig& job) {
  const auto& rules = job.parallelism.reshard_rules;
  return job.parallelism.fsdp_reshard_after_forward == "auto" ||
         std::ranges::any_of(rules, [](const config::Strings& rule) { return rule[1] == "auto"; });
}

namespace {

parallel::ShardingOptions sharding_of(const config::JobConfig& job, at::Device device) {
  parallel::ShardingOptions options;
  options.precision = precision_of(job);
  options.device = device;
  options.reshard =
      parallel::ReshardPolicy::parse(job.parallelism.fsdp_reshard_after_forward).value();
  for (const config::Strings& rule : job.parallelism.reshard_rules)
    options.reshard_rules.push_back({rule[0], parallel::ReshardPolicy::parse(rule[1]).value()});
  options.accumulation = accumulation_of(job.parallelism.fsdp_gradient_accumulation);
  options.deterministic = job.debug.deterministic;
  options.freeze = job.training.freeze;
  options.offload = job.training.enable_cpu_offload;
  return options;
}

parallel::TensorParallelOptions tensor_of(const config::JobConfig& job) {
  parallel::TensorParallelOptions options;
  options.sequence_parallel = !job.parallelism.disable_sequence_parallel;
  options.loss_parallel = !job.parallelism.disable_loss_parallel;
  // In deterministic mode both ways cut products at the same rows, so that both have the same bits.
  const bool chunks = job.parallelism.enable_async_tensor_parallel || job.debug.deterministic;
  if (chunks && options.sequence_parallel)
    options.token_chunks = static_cast<int>(job.parallelism.async_tensor_parallel_chunks);
  options.overlap_chunks = job.parallelism.enable_async_tensor_parallel;
  return options;
}

parallel::Rotation rotation_of(const std::string& method) {
  return method == "allgather" ? parallel::Rotation::all_gather : parallel::Rotation::ring;
}

}  // namespace

parallel::StageOptions stage_options_of(const config::JobConfig& job, const BatchPlan& plan,
                                        at::Device device) {
  return {sharding_of(job, device),
          tensor_of(job),
          {plan.cut, rotation_of(job.parallelism.context_parallel_rotate_method)},
          recompute_of(job.activation_checkpoint),
          {plan.microbatch_rows, plan.cut.positions()}};
}

optim::ScheduleOptions lr_schedule_of(const config::JobConfig& job) {
  optim::ScheduleOptions options;
  options.warmup_steps = job.lr_scheduler.warmup_steps;
  options.total_steps = job.lr_scheduler.total_steps.value_or(job.training.steps);
  options.decay_ratio = job.lr_scheduler.decay_ratio;
  options.decay = optim::decay_from_name(job.lr_scheduler.decay_type);
  options.min_lr_factor = job.lr_scheduler.min_lr_factor;
  return options;
}

}  // namespace tessera::train
