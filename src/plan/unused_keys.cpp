// SPDX-License-Identifier: Apache-2.0
#include "key_rules.hpp"
#include "rules.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::plan {

using namespace config::key_names;

namespace {

class UnusedKeys : Rules {
 public:
  using Rules::Rules;

  void all() {
    if (reading_.use != config::JobUse::training) return;
    saves();
    steps();
    parallelism();
    profiles();
    rounding();
  }

 private:
  /// `others`: of the rule, besides `key`. A value that was misread breaks none.
  void warn(bool applies, const char* key, const char* without, Keys others = {}) {
    if (applies && reading_.understood({key}) && reading_.understood(others))
      warn_of(key, fmt::format(" has no effect: {}", without));
  }

  void cannot_rewind(bool rewinds, const char* key) {
    if (rewinds && !job_.checkpoint.enable && reading_.understood({key, "checkpoint.enable"}))
      warn_of(
          key,
          " ends the job where it would rewind: checkpoint.enable is false, and there is nothing "
          "to rewind to");
  }

  void saves() {
    const config::Checkpoint& c = job_.checkpoint;
    const char* disabled = "checkpoint.enable is false";
    warn(!c.enable && c.load_step >= 0, "checkpoint.load_step", disabled);
    warn(!c.enable && c.load_only, "checkpoint.load_only", disabled);
    warn(!c.enable && c.last_save_in_hf, "checkpoint.last_save_in_hf", disabled);
    warn(!c.last_save_model_only && c.export_dtype != config::Checkpoint().export_dtype,
         "checkpoint.export_dtype",
         "the last checkpoint has only the model if checkpoint.last_save_model_only is true",
         {"checkpoint.last_save_model_only"});
  }

  void steps() {
    const config::Optimizer& o = job_.optimizer;
    warn(!o.stochastic_rounding && job_.training.dtype != "bfloat16" &&
             o.moments_dtype != "bfloat16",
         "optimizer.stochastic_rounding", "neither weights nor moments are bfloat16",
         {"training.dtype", "optimizer.moments_dtype"});
    cannot_rewind(o.on_nonfinite == "rewind", "optimizer.on_nonfinite");
    cannot_rewind(o.spike_zscore != 0 && o.on_spike == "rewind", "optimizer.on_spike");
    warn(o.spike_zscore == 0 && o.on_spike == "rewind", "optimizer.on_spike",
         "optimizer.spike_zscore is 0");
    warn(job_.training.document_end_id && !job_.training.document_mask, "training.document_end_id",
         "training.document_mask is false");
  }

  void parallelism() {
    const config::Parallelism& p = job_.parallelism;
    const bool one_stage = p.pipeline_parallel_degree == 1;
    const char* no_pipeline = "parallelism.pipeline_parallel_degree is 1";
    warn(one_stage && !p.pipeline_parallel_split_points.empty(),
         "parallelism.pipeline_parallel_split_points", no_pipeline, {kPp});
    warn(one_stage && p.module_fqns_per_model_part, "parallelism.module_fqns_per_model_part",
         no_pipeline, {kPp});
    warn(one_stage && p.pipeline_parallel_stage_map != "default",
         "parallelism.pipeline_parallel_stage_map", no_pipeline, {kPp});
    warn(one_stage && p.pipeline_parallel_layers_per_stage,
         "parallelism.pipeline_parallel_layers_per_stage", no_pipeline, {kPp});
    warn(one_stage && !p.pipeline_parallel_schedule_csv.empty(),
         "parallelism.pipeline_parallel_schedule_csv", no_pipeline, {kPp});
    warn(one_stage && !p.pipeline_parallel_microbatch_steps.empty(),
         "parallelism.pipeline_parallel_microbatch_steps", no_pipeline, {kPp});
    warn(p.tensor_parallel_degree == 1 && p.enable_async_tensor_parallel,
         "parallelism.enable_async_tensor_parallel", "parallelism.tensor_parallel_degree is 1",
         {kTp});
    warn(p.data_parallel_shard_degree == 1 && p.context_parallel_degree == 1 &&
             p.expert_parallel_degree == 1 && p.fsdp_register_buffers,
         "parallelism.fsdp_register_buffers", "parallelism.data_parallel_shard_degree is 1",
         {"parallelism.data_parallel_shard_degree"});
  }

  void profiles() {
    const config::Profiling& p = job_.profiling;
    const char* too_late = "profiling.profile_freq is more than training.steps";
    const bool late = p.profile_freq > job_.training.steps;
    warn(p.enable_profiling && late, "profiling.enable_profiling", too_late);
    warn(p.enable_memory_snapshot && late, "profiling.enable_memory_snapshot", too_late);
  }

  /// Keys of a converter that model.converters does not name; but TorchTitan's files have lists of
  /// names for converters that users may add.
  void rounding() {
    if (!reading_.understood({"model.converters"})) return;
    for (const config::Option& option : config::options())
      if (option.key.starts_with("quantize.") && !option.key.ends_with("fqns") && option.relevant &&
          !option.relevant(job_) && reading_.written(option.key) &&
          get(option, job_) != default_of(option))
        warn(true, option.key.data(), "model.converters does not name its converter");
  }
};

}  // namespace

void warn_of_unused_keys(config::Reading& job) { UnusedKeys(job).all(); }

}  // namespace tessera::plan
