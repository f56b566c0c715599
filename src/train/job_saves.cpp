// SPDX-License-Identifier: Apache-2.0
#include "job_saves.hpp"

#include <chrono>
#include <utility>

#include "tessera/base/log.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/rank_record.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/train/hf_conversion.hpp"

namespace tessera::train {

JobSaves::JobSaves(const config::Resolved& resolved, Trainer& trainer, comm::Communicator& control,
                   at::Device device, SaveAndStop& policy, Reporter& reporter,
                   std::filesystem::path folder)
    : resolved_(resolved),
      job_(resolved.job),
      trainer_(trainer),
      control_(control),
      policy_(policy),
      reporter_(reporter),
      folder_(std::move(folder)),
      device_copies_(make_device_copies(device)),
      saver_(control, device_copies_.get()) {}

void JobSaves::hold_updates() {
  if (device_copies_) device_copies_->hold_updates();
}

void JobSaves::finish() {
  const comm::Watchdog::Patience patience(std::chrono::seconds(job_.comm.save_timeout_seconds));
  note(saver_.finish());
}

void JobSaves::save(std::int64_t step) {
  const comm::Watchdog::Patience patience(std::chrono::seconds(job_.comm.save_timeout_seconds));
  const double began = metrics::monotonic_seconds();
  finish();
  saving_step_ = step;
  if (step == job_.training.steps && job_.checkpoint.last_save_model_only) {
    save_last(step);
    return reporter_.spent_on_checkpoints(metrics::monotonic_seconds() - began);
  }
  if (auto& plan = policy_.plan()) plan->save_began(SaveAndStop::now());
  TrainState state = trainer_.state();
  state.step = step;
  state.samples = trainer_.first_sample(step);
  if (job_.checkpoint.async_mode == "disabled")
    note(save_state(saver_, trainer_, resolved_, folder_, state));
  else
    begin_save_state(saver_, trainer_, resolved_, folder_, state);
  reporter_.spent_on_checkpoints(metrics::monotonic_seconds() - began);
}

/// The model alone, and on request once more as other programs read it.
void JobSaves::save_last(std::int64_t step) {
  const auto result = save_model_only(saver_, trainer_, resolved_, folder_, step);
  note(result);
  if (!job_.checkpoint.last_save_in_hf) return;
  const std::filesystem::path folder = folder_ / fmt::format("hf-{:08d}", step);
  const std::string& name = job_.checkpoint.export_dtype;
  const DType type = name == "bfloat16" ? DType::bf16 : name == "float16" ? DType::f16 : DType::f32;
  comm::on_rank_zero(control_, [&] {
    export_hf(result.folder, folder, {.dtype = type, .replace = true, .tokenizer = {}});
    return std::string();
  });
  reporter_.note(fmt::format("Hugging Face weights {}", folder.string()));
}

void JobSaves::note(const std::optional<checkpoint::SaveResult>& result) {
  if (!result) return;
  comm::rank_record::note_saved(saving_step_);
  const bool held = job_.checkpoint.async_mode == "disabled";
  if (auto& plan = policy_.plan())
    plan->save_took(held ? result->seconds : result->blocked_seconds, result->seconds);
  if (result->kept_existing)
    return log::warning("{} exists and is kept; this run wrote nothing there",
                        result->folder.string());
  reporter_.note(
      fmt::format("checkpoint {} ({} in {:.2f} s{})", result->folder.string(),
                  metrics::human_bytes(result->bytes), result->seconds,
                  held ? "" : fmt::format("; training waited {:.3f} s", result->blocked_seconds)));
}

}  // namespace tessera::train
