#include "tessera/train/setup.hpp"

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/model/llama.hpp"
#include "tessera/parallel/stage_split.hpp"

namespace tessera::train {
namespace {

using mesh::Axis;

torch::ScalarType type_named(const std::string& name) {
  if (name == "float64") return torch::kFloat64;
  return name == "bfloat16" ? torch::kBFloat16 : torch::kFloat32;
}

void require_divides(std::int64_t value, const char* what, int degree, const char* key) {
  require(value % degree == 0, ExitCode::usage, "{} {} cannot be shared by {} {}; choose a divisor of {}", what, value,
          key, degree, value);
}

}  // namespace

mesh::Layout layout_of(const config::Resolved& resolved, int world) {
  const config::Parallelism& p = resolved.job.parallelism;
  const mesh::Degrees degrees{p.pipeline_parallel_degree, p.data_parallel_replicate_degree,
                              p.data_parallel_shard_degree, p.context_parallel_degree, p.tensor_parallel_degree};
  try {
    return mesh::Layout::resolve(degrees, world);
  } catch (const Error& error) {
    std::string origins;
    for (const char* key : {"pipeline_parallel_degree", "data_parallel_replicate_degree", "data_parallel_shard_degree",
                            "context_parallel_degree", "tensor_parallel_degree"}) {
      const std::string origin = resolved.origin(std::string("parallelism.") + key);
      if (origin != "default") origins += fmt::format("\n  {}: parallelism.{}", origin, key);
    }
    throw Error(error.code(), error.what() + origins);
  }
}

comm::Backend backend_of(const config::JobConfig& job, torch::Device device) {
  const std::string& name = job.comm.backend;
  require(device.is_cpu() || name == "auto" || name == "nccl", ExitCode::usage,
          "comm.backend = \"{}\" moves host memory, and the model is on {}; use auto or nccl", name, device.str());
  require(!(device.is_cpu() && name == "nccl"), ExitCode::environment,
          "comm.backend = \"nccl\" needs a GPU and a build with TESSERA_WITH_NCCL; this rank has neither or one of "
          "them. Use auto or mpi");
  if (name == "strict") return comm::Backend::strict;
  return device.is_cuda() ? comm::Backend::nccl : comm::Backend::mpi;
}

parallel::Precision precision_of(const config::JobConfig& job) {
  const auto master = type_named(job.training.dtype);
  if (master == torch::kFloat64) return {master, master, master};
  return {master, type_named(job.training.mixed_precision_param), type_named(job.training.mixed_precision_reduce)};
}

model::LlamaShape llama_shape_of(const config::JobConfig& job, std::int64_t tokenizer_vocab) {
  if (job.model.hf_config) return model::llama_from_hf_config(*job.model.hf_config);
  require(job.model.name == "llama3", ExitCode::usage,
          "model.name \"{}\" is not known; llama3 is, or give model.hf_config", job.model.name);
  const std::string flavor = shape_flavor(job.model.flavor);
  model::LlamaShape shape = model::llama_flavor(flavor, std::nullopt);
  if (flavor == "debugmodel") shape.vocab = std::max(shape.vocab, tokenizer_vocab);
  return shape;
}

model::Model model_of(const config::JobConfig& job, std::int64_t tokenizer_vocab, std::int64_t positions,
                      torch::Device device) {
  const model::LlamaShape shape = llama_shape_of(job, tokenizer_vocab);
  require(tokenizer_vocab <= shape.vocab, ExitCode::data,
          "the tokenizer has {} tokens, {} only {}; use the model's own tokenizer", tokenizer_vocab, shape.name,
          shape.vocab);
  return model::make_llama(shape, positions, precision_of(job).compute, device);
}

void check_model_fits(const model::Model& model, const mesh::Layout& layout, const BatchPlan& plan,
                      bool sequence_parallel) {
  const int tp = layout.degree(Axis::tp);
  const model::Dimensions& d = model.dimensions;
  require_divides(d.heads, "attention heads", tp, "tensor_parallel_degree");
  require(d.kv_heads % tp == 0 || tp % d.kv_heads == 0, ExitCode::usage,
          "key-value heads {} cannot be shared by tensor_parallel_degree {}; choose a divisor of {}, or a multiple "
          "that divides {} heads",
          d.kv_heads, tp, d.kv_heads, d.heads);
  require_divides(d.hidden, "feed-forward size", tp, "tensor_parallel_degree");
  require_divides(d.vocab, "vocabulary", tp, "tensor_parallel_degree");
  if (sequence_parallel)
    require_divides(plan.microbatch_rows * plan.cut.positions(), "tokens of a microbatch (sequence parallel)", tp,
                    "tensor_parallel_degree");
}

bool weighs_memory(const config::JobConfig& job) {
  const auto& rules = job.parallelism.reshard_rules;
  return job.parallelism.fsdp_reshard_after_forward == "auto" ||
         std::ranges::any_of(rules, [](const config::Strings& rule) { return rule[1] == "auto"; });
}

parallel::StageOptions stage_options_of(const config::JobConfig& job, const BatchPlan& plan, torch::Device device,
                                        std::int64_t budget_bytes) {
  parallel::StageOptions options;
  options.precision = precision_of(job);
  options.reshard = parallel::ReshardPolicy::parse(job.parallelism.fsdp_reshard_after_forward).value();
  for (const config::Strings& rule : job.parallelism.reshard_rules)
    options.reshard_rules.push_back({rule[0], parallel::ReshardPolicy::parse(rule[1]).value()});
  if (job.parallelism.fsdp_gradient_accumulation == "sharded") options.accumulation = parallel::Accumulation::sharded;
  options.reshard_budget_bytes = budget_bytes;
  options.freeze = job.training.freeze;
  options.offload = job.training.enable_cpu_offload;
  options.recompute_every = job.activation_checkpoint.recompute_every();
  options.sequence_parallel = !job.parallelism.disable_sequence_parallel;
  options.loss_parallel = !job.parallelism.disable_loss_parallel;
  options.deterministic = job.debug.deterministic;
  options.device = device;
  options.batch = plan.microbatch_rows;
  options.seq = plan.cut.positions();
  options.cut = plan.cut;
  options.rotation = job.parallelism.context_parallel_rotate_method == "allgather" ? parallel::Rotation::all_gather
                                                                                   : parallel::Rotation::ring;
  return options;
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
