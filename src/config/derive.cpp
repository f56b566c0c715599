// SPDX-License-Identifier: Apache-2.0
// Values that one key gives to another.
#include <fmt/format.h>

#include "draft.hpp"
#include "tessera/config/flavor.hpp"

namespace tessera::config {

namespace {

void rename_tokenizer_path(Draft& draft) {
  auto& model = draft.job.model;
  if (!model.tokenizer_path) return;
  model.hf_assets_path = *model.tokenizer_path;
  draft.derived["model.hf_assets_path"] = "model.tokenizer_path";
  draft.warnings.push_back("model.tokenizer_path is an old name; write model.hf_assets_path");
}

/// With training.dtype = "float64" everything is float64, or the comparison that it is for would
/// mean nothing.
void widen(Draft& draft, std::string_view key, std::string& type) {
  if (draft.job.training.dtype != "float64" || type == "float64") return;
  if (draft.written(key))
    draft.warn_of({key, "training.dtype"},
                  fmt::format("{} = \"{}\" ({}) has no effect: training.dtype is float64", key,
                              type, draft.place_of(key).exact()));
  type = "float64";
  draft.derived[std::string(key)] = "training.dtype";
}

void forget_moments(Draft& draft) {
  std::string& type = draft.job.optimizer.moments_dtype;
  if (draft.job.training.dtype != "float64" || type == "auto") return;
  draft.warn_of({"optimizer.moments_dtype", "training.dtype"},
                fmt::format("optimizer.moments_dtype = \"{}\" ({}) has no effect: training.dtype "
                            "is float64",
                            type, draft.place_of("optimizer.moments_dtype").exact()));
  type = "auto";
  draft.derived["optimizer.moments_dtype"] = "training.dtype";
}

/// TorchTitan's rule: a warm-up that is longer than the schedule is cut to it.
void shorten_warmup(Draft& draft) {
  auto& schedule = draft.job.lr_scheduler;
  const std::int64_t total = schedule.total_steps.value_or(draft.job.training.steps);
  if (schedule.warmup_steps <= total) return;
  draft.warn_of(
      {"lr_scheduler.warmup_steps", "lr_scheduler.total_steps", "training.steps"},
      fmt::format(
          "lr_scheduler.warmup_steps {} ({}) is longer than the schedule; it is reduced to {}",
          schedule.warmup_steps, draft.place_of("lr_scheduler.warmup_steps").exact(), total));
  schedule.warmup_steps = total;
  draft.derived["lr_scheduler.warmup_steps"] =
      schedule.total_steps ? "lr_scheduler.total_steps" : "training.steps";
}

/// What validation shares with training unless it is said otherwise; also while it is off, because
/// `tessera eval` turns it on for a recorded job, in which all keys are written.
void share_sizes(Draft& draft) {
  const auto share = [&draft](const char* key, std::int64_t& value, const char* from,
                              std::int64_t given) {
    if (draft.written(key)) return;
    if (given != kAutomatic) value = given;
    draft.derived[key] = from;
  };
  const Training& training = draft.job.training;
  share("validation.seq_len", draft.job.validation.seq_len, "training.seq_len", training.seq_len);
  share("validation.local_batch_size", draft.job.validation.local_batch_size,
        "training.local_batch_size", training.local_batch_size);
}

/// TorchTitan's rule: Hugging Face weights are beside the tokenizer, unless the job says where.
void find_hf_weights(Draft& draft) {
  Checkpoint& checkpoint = draft.job.checkpoint;
  if (!checkpoint.initial_load_in_hf || checkpoint.initial_load_path) return;
  checkpoint.initial_load_path = draft.job.model.hf_assets_path;
  draft.derived["checkpoint.initial_load_path"] = "model.hf_assets_path";
}

void mask_documents(Draft& draft) {
  if (draft.written("training.document_mask") || !masks_documents(draft.job.model)) return;
  draft.job.training.document_mask = true;
  draft.derived["training.document_mask"] = "model.flavor";
}

/// Hugging Face's files hold the model alone.
void save_model_only_in_hf(Draft& draft) {
  Checkpoint& checkpoint = draft.job.checkpoint;
  if (!checkpoint.last_save_in_hf || draft.written("checkpoint.last_save_model_only")) return;
  checkpoint.last_save_model_only = true;
  draft.derived["checkpoint.last_save_model_only"] = "checkpoint.last_save_in_hf";
}

}  // namespace

void derive(Draft& draft) {
  rename_tokenizer_path(draft);
  widen(draft, "training.mixed_precision_param", draft.job.training.mixed_precision_param);
  widen(draft, "training.mixed_precision_reduce", draft.job.training.mixed_precision_reduce);
  forget_moments(draft);
  shorten_warmup(draft);
  find_data(draft);
  find_hf_weights(draft);
  share_sizes(draft);
  save_model_only_in_hf(draft);
  mask_documents(draft);
}

}  // namespace tessera::config
