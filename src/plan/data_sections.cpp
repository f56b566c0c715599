// SPDX-License-Identifier: Apache-2.0
// The sections about data and about faults in it.
#include <algorithm>

#include "sections.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/metrics/run_folder.hpp"

namespace tessera::plan {
namespace {

ReadAheadPlan read_ahead_plan(const config::DataLoader& loader) {
  if (loader.num_workers == 0) return {1, 1};
  constexpr std::int64_t kMostSteps = 1024, kMostThreads = 64;
  const std::int64_t threads = std::min(loader.num_workers, kMostThreads);
  const std::int64_t each = std::min(loader.prefetch_factor.value_or(2), kMostSteps);
  return {static_cast<int>(std::min(threads * each, kMostSteps)), static_cast<int>(threads)};
}

/// The points of a sweep share them: most of them read the same text.
std::filesystem::path tokens_folder(const config::JobConfig& job) {
  if (job.training.tokens_cache) return *job.training.tokens_cache;
  const std::filesystem::path run = job.job.dump_folder, sweep = run.parent_path();
  return (metrics::is_sweep_folder(sweep) ? sweep : run) / "tokens";
}

ValidationPlan validation_plan(const config::Validation& v) {
  ValidationPlan plan;
  plan.path = v.dataset_path;
  plan.dataset = config::dataset_of(v.dataset);
  plan.seq_len = v.seq_len;
  plan.freq = v.freq;
  plan.steps = v.steps;
  plan.samples = v.samples;
  plan.read_ahead = read_ahead_plan(v.dataloader);
  return plan;
}

/// Omits what would contradict data that is replayed, has nothing to do with it, or starts
/// elsewhere than at step 1.
std::string replay_flags(const config::JobConfig& job) {
  std::string flags;
  if (!job.debug.inject_faults.empty()) flags += " --debug.inject_faults=";
  if (!job.training.mixture.empty()) flags += " --training.mixture=";
  if (!job.checkpoint.initial_load_model_only) flags += " --checkpoint.initial_load_model_only";
  if (job.validation.enable) flags += " --validation.no_enable";
  if (job.validation.split > 0) flags += " --validation.split 0";
  return flags;
}

/// Of weights that Tessera saved, whatever the job itself starts from.
std::string replay_start_flags(const config::Checkpoint& c) {
  std::string flags;
  if (c.initial_load_in_hf) flags += " --checkpoint.no_initial_load_in_hf";
  if (c.initial_load_in_hf_quantized) flags += " --checkpoint.no_initial_load_in_hf_quantized";
  if (!c.exclude_from_loading.empty()) flags += " --checkpoint.exclude_from_loading=";
  return flags;
}

}  // namespace

DataPlan data_plan(const config::JobConfig& job) {
  const config::Training& t = job.training;
  DataPlan plan;
  plan.dataset = config::dataset_of(t.dataset);
  for (const config::Strings& row : t.mixture)
    plan.sources.push_back(config::mixture_entry(row).value());
  if (plan.sources.empty() && t.dataset_path) plan.sources.push_back({*t.dataset_path, 1, ""});
  plan.seq_len = t.seq_len;
  plan.tokenizer = job.model.hf_assets_path;
  plan.tokens_folder = tokens_folder(job);
  plan.held_out = job.validation.split;
  plan.documents_masked = job.training.document_mask;
  plan.knows_document_end = t.document_end_id.has_value();
  plan.seed = static_cast<std::uint64_t>(job.debug.seed);
  plan.read_ahead = read_ahead_plan(t.dataloader);
  if (job.validation.enable) plan.validation = validation_plan(job.validation);
  return plan;
}

FaultPlan fault_plan(const config::JobConfig& job, int ranks) {
  const config::Optimizer& o = job.optimizer;
  FaultPlan plan;
  plan.on_nonfinite = o.on_nonfinite == "stop"     ? OnNonfinite::stop
                      : o.on_nonfinite == "rewind" ? OnNonfinite::rewind
                                                   : OnNonfinite::skip;
  plan.on_spike = o.on_spike == "rewind" ? OnSpike::rewind : OnSpike::warn;
  plan.spike_zscore = o.spike_zscore;
  plan.max_skipped_steps = o.max_skipped_steps;
  plan.check_replicas = job.debug.check_replicas;
  plan.injected = injected_faults(job.debug.inject_faults, ranks, job.training.steps);
  plan.replay_flags = replay_flags(job);
  plan.replay_start_flags = replay_start_flags(job.checkpoint);
  return plan;
}

}  // namespace tessera::plan
