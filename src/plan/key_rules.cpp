// SPDX-License-Identifier: Apache-2.0
#include "key_rules.hpp"

#include <algorithm>

#include "rules.hpp"
#include "sections.hpp"
#include "tessera/config/converters.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/plan/linear_precision.hpp"

namespace tessera::plan {
namespace {

using namespace config::key_names;

constexpr std::string_view kConverters = "model.converters";
constexpr std::string_view kFloat8Gather = "quantize.linear.float8.enable_fsdp_float8_all_gather";

class KeyRules : public Rules {
 public:
  using Rules::Rules;

  void all() {
    sequence();
    if (job_.parallelism.pipeline_parallel_degree != 1) pipeline();
    accumulation();
    learning_rate();
    saves();
    profiling();
    converters();
    registered_buffers();
    of_model();
  }

  void of_model() {
    precision();
    weights();
  }

 private:
  void sequence() {
    const config::Parallelism& p = job_.parallelism;
    if (p.enable_async_tensor_parallel && p.disable_sequence_parallel)
      wrong({"parallelism.enable_async_tensor_parallel", kNoSequenceParallel},
            "enable_async_tensor_parallel overlaps the transfers of sequence parallelism, which "
            "disable_sequence_parallel ({}) turns off; keep one of them",
            at(kNoSequenceParallel));
    if (p.disable_loss_parallel && job_.training.fused_linear_cross_entropy == "always" &&
        p.tensor_parallel_degree != 1)
      wrong({"training.fused_linear_cross_entropy", "parallelism.disable_loss_parallel",
             "parallelism.tensor_parallel_degree"},
            "fused_linear_cross_entropy leaves logits cut over tensor-parallel ranks, and "
            "disable_loss_parallel ({}) gathers them; keep one of them",
            at("parallelism.disable_loss_parallel"));
  }

  void pipeline() {
    const config::Parallelism& p = job_.parallelism;
    const bool tuned = p.pipeline_parallel_microbatch_size == 0;
    if (tuned && job_.debug.deterministic)
      wrong({kMicro, "debug.deterministic", kPp},
            "pipeline_parallel_microbatch_size = \"auto\" chooses by timing, and "
            "debug.deterministic needs the same choice in every run; set a number");
    if (tuned && !p.pipeline_parallel_microbatch_steps.empty())
      wrong({kMicroSteps, kMicro, kPp},
            "pipeline_parallel_microbatch_steps gives sizes, and pipeline_parallel_microbatch_size "
            "= \"auto\" ({}) chooses one; keep one of the two keys",
            at(kMicro));
    if (!p.pipeline_parallel_split_points.empty() && p.module_fqns_per_model_part)
      wrong({kCuts, kParts},
            "pipeline_parallel_split_points and module_fqns_per_model_part ({}) both set where "
            "stages begin; keep one",
            at(kParts));
    schedule_file();
  }

  void schedule_file() {
    const config::Parallelism& p = job_.parallelism;
    const bool wants = p.pipeline_parallel_schedule.starts_with("PipelineSchedule");
    const bool has = !p.pipeline_parallel_schedule_csv.empty();
    if (wants && !has)
      wrong({kSchedule, kCsv, kPp}, "{} needs pipeline_parallel_schedule_csv",
            p.pipeline_parallel_schedule);
    if (has && !wants)
      wrong({kCsv, kSchedule, kPp},
            "pipeline_parallel_schedule_csv needs pipeline_parallel_schedule "
            "PipelineScheduleSingle or PipelineScheduleMulti, not {}",
            p.pipeline_parallel_schedule);
  }

  void accumulation() {
    if (job_.parallelism.fsdp_gradient_accumulation == "sharded" && job_.debug.deterministic)
      wrong({"parallelism.fsdp_gradient_accumulation", "debug.deterministic"},
            "fsdp_gradient_accumulation = \"sharded\" sums over ranks before microbatches, and "
            "debug.deterministic needs the opposite order; use \"default\"");
  }

  void registered_buffers() {
    if (!job_.parallelism.fsdp_register_buffers) return;
    const char* key = "parallelism.fsdp_register_buffers";
    for (const auto& [other, over_mpi] :
         {std::pair{"comm.backend", job_.comm.backend == "mpi" || job_.comm.backend == "strict"},
          std::pair{"job.device", job_.job.device == "cpu"}})
      if (over_mpi)
        wrong({key, other},
              "NCCL registers buffers, and {} ({}) chooses MPI; leave one of them out", other,
              at(other));
    if (job_.debug.deterministic)
      wrong({key, "debug.deterministic"},
            "sums in a fixed order (debug.deterministic, {}) are not NCCL's; leave one of the keys "
            "out",
            at("debug.deterministic"));
    if (device_plan(job_).graphs)
      wrong({key, "compile.enable"},
            "steps run as CUDA graphs (compile.enable, {}), whose buffers NCCL registers itself; "
            "leave one of the keys out",
            at("compile.enable"));
  }

  void precision() {
    const config::Training& t = job_.training;
    for (const auto& [key, value] :
         {std::pair{"training.mixed_precision_param", t.mixed_precision_param},
          std::pair{"training.mixed_precision_reduce", t.mixed_precision_reduce}})
      if (value == "float64" && t.dtype != "float64")
        wrong({key, "training.dtype"}, "{} = \"float64\" needs training.dtype = \"float64\"", key);
  }

  void converters() {
    using config::Converter;
    for (const std::string& name : job_.model.converters) {
      const auto converter = config::converter_named(name);
      if (!converter)
        wrong({kConverters},
              "model.converters: there is no \"{}\"; Tessera has quantize.linear.float8, "
              "quantize.linear.mx, quantize.grouped_mm.float8 and quantize.grouped_mm.mx",
              config::shown(name));
    }
    if (config::wants(job_, Converter::float8_linear) && config::wants(job_, Converter::mx_linear))
      wrong({kConverters, "quantize.linear.float8.enable"},
            "quantize.linear.float8 and quantize.linear.mx round the same layers; choose one");
    else
      rounded_layers();
    float8_filter();
    rounded_experts();
  }

  void rounded_experts() {
    using config::Converter;
    const auto& [float8, mx] = job_.quantize.grouped_mm;
    const bool of_float8 = config::wants(job_, Converter::float8_experts),
               of_mx = config::wants(job_, Converter::mx_experts);
    if (of_float8 && of_mx)
      wrong({kConverters},
            "Tessera rounds all experts by one recipe; choose quantize.grouped_mm.float8 or "
            "quantize.grouped_mm.mx");
    for (const auto& [wanted, name, fqns] :
         {std::tuple{of_float8, "quantize.grouped_mm.float8", &float8.fqns},
          {of_mx, "quantize.grouped_mm.mx", &mx.fqns}})
      if (wanted && fqns->empty())
        wrong({kConverters, fmt::format("{}.fqns", name)},
              "{} rounds the experts that {}.fqns names, and it names none; set it to "
              "[\"experts\"], or leave the converter out",
              name, name);
  }

  void rounded_layers() {
    const LinearPrecision precision = linear_precision(job_);
    if (!precision.rounds()) return;
    if (job_.parallelism.enable_async_tensor_parallel)
      warn_of("parallelism.enable_async_tensor_parallel",
              fmt::format(" has no effect with {}: the scales need all tokens before the first "
                          "product",
                          precision.is_mx() ? "MXFP8" : "float8"));
    const char* filter = precision.filter_key();
    if (job_.training.fused_linear_cross_entropy == "always" && precision.rounds(kOutputLayer))
      wrong({"training.fused_linear_cross_entropy", filter},
            "fused_linear_cross_entropy multiplies the output layer in high precision; add "
            "\"output\" to {}, or fuse no loss",
            filter);
  }

  void float8_filter() {
    const config::Float8Linear& f = job_.quantize.linear.float8;
    if (!config::wants(job_, config::Converter::float8_linear)) return;
    if (f.enable_fsdp_float8_all_gather && f.recipe_name.value_or("tensorwise") != "tensorwise")
      wrong({kFloat8Gather, "quantize.linear.float8.recipe_name"},
            "a weight that is gathered in float8 has one scale, and recipe_name = \"{}\" ({}) "
            "wants several; leave one of the two keys out",
            *f.recipe_name, at("quantize.linear.float8.recipe_name"));
    const bool automatic = std::ranges::find(f.filter_fqns, kSmallLayers) != f.filter_fqns.end();
    if (automatic && (f.recipe_name == "rowwise_with_gw_hp" || f.recipe_name == "blockwise"))
      wrong({"quantize.linear.float8.filter_fqns", "quantize.linear.float8.recipe_name"},
            "{} knows the recipes tensorwise and rowwise only, as in torchao; name the layers",
            kSmallLayers);
  }

  void learning_rate() {
    const config::LrScheduler& s = job_.lr_scheduler;
    const Keys keys{"lr_scheduler.total_steps", "training.steps"};
    if (s.total_steps && *s.total_steps < job_.training.steps && reading_.understood(keys))
      reading_.resolved.warnings.push_back(fmt::format(
          "lr_scheduler.total_steps {} ({}) is less than training.steps {}: after it, the learning "
          "rate keeps its last value",
          *s.total_steps, at("lr_scheduler.total_steps"), job_.training.steps));
    decay(s);
  }

  /// TorchTitan's rule: a decay that does not fit after the warm-up is cut.
  void decay(const config::LrScheduler& s) {
    const std::int64_t total = s.total_steps.value_or(job_.training.steps),
                       left = total - s.warmup_steps;
    const Keys keys{"lr_scheduler.decay_ratio", "lr_scheduler.warmup_steps",
                    "lr_scheduler.total_steps", "training.steps"};
    if (!s.decay_ratio || !reading_.understood(keys) ||
        *s.decay_ratio * static_cast<double>(total) < static_cast<double>(left) + 0.5)
      return;
    reading_.resolved.warnings.push_back(fmt::format(
        "lr_scheduler.decay_ratio {} ({}) of {} steps does not fit after {} steps of warm-up; the "
        "rate decays in the last {} steps",
        *s.decay_ratio, at("lr_scheduler.decay_ratio"), total, s.warmup_steps, left));
  }

  /// Where initial weights come from.
  void weights() {
    const config::Checkpoint& c = job_.checkpoint;
    if (c.initial_load_in_hf && !c.initial_load_model_only)
      wrong({"checkpoint.initial_load_model_only", "checkpoint.initial_load_in_hf"},
            "initial_load_model_only = false contradicts initial_load_in_hf ({}): Hugging "
            "Face files have only the model",
            at("checkpoint.initial_load_in_hf"));
    if (!c.initial_load_model_only && !c.initial_load_path)
      wrong({"checkpoint.initial_load_model_only", "checkpoint.initial_load_path"},
            "initial_load_model_only = false continues the run of initial_load_path, which is not "
            "set");
    if (c.initial_load_in_hf_quantized && !c.initial_load_in_hf)
      wrong({"checkpoint.initial_load_in_hf_quantized", "checkpoint.initial_load_in_hf"},
            "initial_load_in_hf_quantized needs initial_load_in_hf");
  }

  void saves() {
    const config::Checkpoint& c = job_.checkpoint;
    if (c.last_save_in_hf && !c.last_save_model_only &&
        reading_.written("checkpoint.last_save_model_only"))
      wrong({"checkpoint.last_save_model_only", "checkpoint.last_save_in_hf"},
            "last_save_model_only = false contradicts last_save_in_hf ({})",
            at("checkpoint.last_save_in_hf"));
    if (c.create_seed_checkpoint && (!c.enable || c.load_only))
      wrong({"checkpoint.create_seed_checkpoint", "checkpoint.enable", "checkpoint.load_only"},
            "create_seed_checkpoint saves a checkpoint, and {} ({}) saves none",
            c.enable ? "checkpoint.load_only = true" : "checkpoint.enable = false",
            at(c.enable ? "checkpoint.load_only" : "checkpoint.enable"));
    if (c.create_seed_checkpoint && !c.initial_load_model_only)
      wrong({"checkpoint.create_seed_checkpoint", "checkpoint.initial_load_model_only"},
            "create_seed_checkpoint saves step 0, and a branch (initial_load_model_only = false, "
            "{}) continues at a later one",
            at("checkpoint.initial_load_model_only"));
  }

  void profiling() {
    const config::Profiling& p = job_.profiling;
    if (p.enable_profiling && p.profiler_warmup + p.profiler_active > p.profile_freq)
      wrong({"profiling.profile_freq", "profiling.profiler_active", "profiling.profiler_warmup",
             "profiling.enable_profiling"},
            "profile_freq {} is less than profiler_warmup {} + profiler_active {}", p.profile_freq,
            p.profiler_warmup, p.profiler_active);
  }
};

}  // namespace

void check_keys(config::Reading& job) {
  KeyRules(job).all();
  warn_of_unused_keys(job);
  check_data_keys(job);
  check_file_keys(job);
}

void check_model_keys(config::Reading& job) { KeyRules(job).of_model(); }

}  // namespace tessera::plan
