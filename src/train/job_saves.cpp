// SPDX-License-Identifier: Apache-2.0
#include "job_saves.hpp"

#include <chrono>

#include "tessera/base/log.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/rank_record.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/inputs/hf_conversion.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/metrics/meter.hpp"

namespace tessera::train {

JobSaves::JobSaves(const plan::JobPlan& plan, Trainer& trainer, comm::Communicator& control,
                   at::Device device, SaveAndStop& policy, Reporter& reporter)
    : plan_(plan),
      trainer_(trainer),
      control_(control),
      policy_(policy),
      reporter_(reporter),
      device_copies_(make_device_copies(device)),
      saver_(control, device_copies_.get()) {}

void JobSaves::hold_updates() {
  if (device_copies_) device_copies_->hold_updates();
}

void JobSaves::finish() {
  const comm::Watchdog::Patience patience(std::chrono::seconds(plan_.comm.save_timeout_seconds));
  note(saver_.finish());
}

void JobSaves::save(std::int64_t step) {
  const comm::Watchdog::Patience patience(std::chrono::seconds(plan_.comm.save_timeout_seconds));
  const auto phase = trainer_.timer().time(metrics::Phase::checkpoint);
  const double began = metrics::monotonic_seconds();
  finish();
  saving_step_ = step;
  if (step == plan_.run.steps && plan_.save.last_model_only) {
    save_last(step);
    return reporter_.spent_on_checkpoints(metrics::monotonic_seconds() - began);
  }
  if (auto& timer = policy_.timer()) timer->save_began(SaveAndStop::now());
  TrainState state = trainer_.state();
  state.step = step;
  state.samples = trainer_.first_sample(step);
  if (step < trainer_.state().step) --state.skipped_steps;  // a resumed run takes that step again
  if (plan_.save.waits)
    note(save_state(saver_, trainer_, plan_, plan_.load.checkpoints, state));
  else
    begin_save_state(saver_, trainer_, plan_, plan_.load.checkpoints, state);
  reporter_.spent_on_checkpoints(metrics::monotonic_seconds() - began);
}

/// The model alone, and on request also as other programs read it.
void JobSaves::save_last(std::int64_t step) {
  const auto result = save_model_only(saver_, trainer_, plan_, plan_.load.checkpoints, step);
  note(result);
  if (plan_.save.last_in_hf) export_last(step);
}

std::filesystem::path JobSaves::exported(std::int64_t step) const {
  return plan_.load.checkpoints / fmt::format("hf-{:08d}", step);
}

void JobSaves::export_last(std::int64_t step) {
  const std::filesystem::path folder = exported(step);
  comm::on_rank_zero(control_, [&] {
    inputs::export_hf(plan_.load.checkpoints / checkpoint::step_name(step), folder,
                      {.dtype = plan_.save.export_dtype, .replace = true, .tokenizer = {}});
    return std::string();
  });
  reporter_.note(fmt::format("Hugging Face weights {}", folder.string()));
}

void JobSaves::complete(std::int64_t step) {
  if (!plan_.save.enabled || !plan_.save.last_in_hf) return;
  const comm::Watchdog::Patience patience(std::chrono::seconds(plan_.comm.save_timeout_seconds));
  const std::string there = comm::on_rank_zero(
      control_, [&] { return std::string(hf::holds_weights(exported(step)) ? "yes" : ""); });
  if (there.empty()) export_last(step);
}

void JobSaves::note(const std::optional<checkpoint::SaveResult>& result) {
  if (!result) return;
  comm::rank_record::note_saved(saving_step_);
  const bool held = plan_.save.waits;
  if (auto& timer = policy_.timer())
    timer->save_took(held ? result->seconds : result->blocked_seconds, result->seconds);
  if (result->kept_existing)
    return log::warning("{} exists and is kept; this run wrote nothing there",
                        result->folder.string());
  reporter_.note(
      fmt::format("checkpoint {} ({} in {:.2f} s{})", result->folder.string(),
                  metrics::human_bytes(result->bytes), result->seconds,
                  held ? "" : fmt::format("; training waited {:.3f} s", result->blocked_seconds)));
}

}  // namespace tessera::train
