// SPDX-License-Identifier: Apache-2.0
#include "reporter.hpp"

#include <torch/version.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <set>

#include "run_pictures.hpp"
#include "run_prediction.hpp"
#include "speed.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/metrics/memory.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {
namespace {

/// Of the busiest mixture, and of each.
void add_experts(metrics::StepRecord& record, const StepOutcome& outcome) {
  if (outcome.loads.empty()) return;
  double most = 0, least = 1;
  for (const ExpertLoad& load : outcome.loads) {
    most = std::max(most, load.max_over_mean);
    least = std::min(least, load.entropy);
    record.extra.emplace_back("moe/" + load.name + "/load_max_over_mean", load.max_over_mean);
    record.extra.emplace_back("moe/" + load.name + "/entropy", load.entropy);
  }
  record.extra.emplace_back("moe/load_max_over_mean", most);
  record.extra.emplace_back("moe/entropy", least);
  record.extra.emplace_back("moe/balance_loss", outcome.balance_loss);
}

void add_validation(metrics::StepRecord& record, const ValidationResult& result) {
  record.extra.emplace_back("validation/loss", result.loss);
  for (const auto& [name, loss] : result.parts)
    record.extra.emplace_back("validation/" + name + "/loss", loss);
  record.extra.emplace_back("validation/tokens", static_cast<double>(result.tokens));
  record.extra.emplace_back("time/validation", result.seconds);
}

/// Launchers give ranks terminals of their own; `tessera launch` says where their output goes.
metrics::Terminal terminal(bool color) {
  const bool launched = std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMIX_RANK");
  const char* screen = std::getenv("TESSERA_SCREEN");
  if (launched && !(screen && std::string_view(screen) == "1")) return {};
  return metrics::terminal_of(STDOUT_FILENO, color);
}

metrics::Kept kept_by(const plan::JobPlan& plan) {
  if (!plan.save.enabled)
    return plan.load.resumes ? metrics::Kept::only_loaded : metrics::Kept::nothing;
  return plan.save.last_model_only ? metrics::Kept::model : metrics::Kept::state;
}

std::vector<std::string> each_once(const std::vector<std::string>& hosts) {
  const std::set<std::string> once(hosts.begin(), hosts.end());
  return {once.begin(), once.end()};
}

}  // namespace

Reporter::Reporter(comm::World& world, const plan::JobPlan& plan, Trainer& trainer,
                   const LoadedState& start, const std::vector<std::string>& command_line)
    : plan_(plan),
      trainer_(trainer),
      speaks_(world.rank() == 0),
      flops_(flops_of(trainer.model(), plan.data.seq_len)),
      peak_(peak_of(plan.run.metrics, trainer.stages().options(), world.local_size())),
      traffic_(trainer),
      times_(trainer),
      summary_(start.state.step + 1, plan.run.steps),
      first_step_(start.state.step + 1) {
  const auto hosts = each_once(comm::all_gather_strings(world.control(), world.host()));
  comm::on_rank_zero(world.control(), [&] {
    open(world, command_line, start, hosts);
    return std::string();
  });
  if (plan.run.metrics.tensorboard) open_events(world);
}

/// Where TorchTitan has them: a folder for each start of a run, and in it one for each rank if all
/// ranks write. All ranks write the same figures of the job, and times of their own.
void Reporter::open_events(comm::World& world) {
  const plan::MetricsPlan& metrics = plan_.run.metrics;
  const std::string stamp =
      comm::all_gather_strings(world.control(), metrics::tensorboard_stamp()).front();
  if (!speaks_ && !metrics.every_rank) return;
  std::filesystem::path folder = metrics.tensorboard_folder / stamp;
  if (metrics.every_rank) folder /= fmt::format("rank_{}", world.rank());
  events_ = std::make_unique<metrics::TensorBoardWriter>(folder, first_step_);
}

void Reporter::open(comm::World& world, const std::vector<std::string>& command_line,
                    const LoadedState& start, const std::vector<std::string>& hosts) {
  folder_ = std::make_unique<metrics::RunFolder>(plan_.run.folder.string());
  folder_->write_config(plan_.run.absolute_toml);
  folder_->add_attempt({metrics::make_attempt_id(),
                        "",
                        first_step_,
                        world.size(),
                        trainer_.mesh().layout().to_string(),
                        hosts,
                        command_line,
                        {{"mpi", comm::World::library_version()}, {"libtorch", TORCH_VERSION}}});
  const bool trains = first_step_ <= plan_.run.steps, saves = plan_.load.own.saves;
  if (first_step_ == 1 || !start.own)
    set_metrics_aside(start.own);
  else if (trains && !saves)
    log::info("checkpoint.load_only saves nothing: the metrics of this start are in {}",
              folder_->keep_metrics_apart().string());
  if (trains) metrics::forget_prediction(folder_->path());
  sink_ = std::make_unique<metrics::JsonlSink>(folder_->metrics_file(), first_step_ - 1);
  console_ = std::make_unique<metrics::Console>(std::cout, terminal(plan_.run.metrics.color),
                                                first_step_, plan_.run.steps, peak_, world.size());
}

void Reporter::set_metrics_aside(bool resumed) const {
  const std::filesystem::path aside = folder_->set_metrics_aside();
  if (aside.empty()) return;
  const char* why = !plan_.load.resumes           ? "checkpoint.enable is false"
                    : resumed && first_step_ == 1 ? "its checkpoint is of step 0"
                                                  : "this run has no checkpoint";
  log::info(
      "starting from step {} with new metrics, because {}; the metrics of the last run are "
      "kept in {}",
      first_step_, why, aside.string());
}

std::int64_t Reporter::step_tokens() const {
  return trainer_.batch_plan().global_batch * plan_.data.seq_len;
}

metrics::StepRecord Reporter::record(std::int64_t step, const StepOutcome& outcome,
                                     double seconds) const {
  metrics::StepRecord record;
  record.step = step;
  record.loss = outcome.loss;
  record.grad_norm = outcome.grad_norm;
  record.lr = outcome.lr;
  record.tokens = step_tokens();
  record.step_seconds = seconds;
  record.tokens_per_second = static_cast<double>(record.tokens) / seconds;
  record.tps = record.tokens_per_second / trainer_.mesh().layout().world();
  record.mfu = metrics::mfu(record.tps, flops_.full, peak_);
  record.extra.emplace_back("mfu_causal", metrics::mfu(record.tps, flops_.causal, peak_));
  for (const auto phase : {metrics::Phase::data, metrics::Phase::forward, metrics::Phase::backward,
                           metrics::Phase::optimizer})
    record.extra.emplace_back("time/" + std::string(name_of(phase)),
                              trainer_.timer().seconds(phase));
  record.extra.emplace_back(
      "time/communication",
      trainer_.timer().seconds(metrics::Phase::communication) + times_.waited());
  traffic_.add_to(record);
  add_experts(record, outcome);
  if (plan_.faults.spike_zscore > 0) record.extra.emplace_back("loss_zscore", outcome.zscore);
  record.extra.emplace_back("skipped_steps", static_cast<double>(trainer_.state().skipped_steps));
  return record;
}

/// What each part of a mixture gave to the step, and how often it was read by then.
void Reporter::add_shares(metrics::StepRecord& record) const {
  const auto before = trainer_.source().shares(trainer_.first_sample(record.step - 1)),
             after = trainer_.source().shares(trainer_.first_sample(record.step));
  for (std::size_t i = 0; i < after.size(); ++i) {
    record.extra.emplace_back("data/" + after[i].name + "/samples",
                              static_cast<double>(after[i].samples - before[i].samples));
    record.extra.emplace_back("data/" + after[i].name + "/epochs", after[i].epochs);
  }
}

void Reporter::begin_step() {
  traffic_.begin();
  times_.begin_step();
}

void Reporter::measure() {
  times_.end_step();
  traffic_.measure(times_.waited());
}

void Reporter::step(std::int64_t step, const StepOutcome& outcome, double seconds,
                    const std::optional<ValidationResult>& validation) {
  if (validation) times_.spent("validation", validation->seconds);
  if (!speaks_ && !events_) return;
  metrics::StepRecord row = record(step, outcome, seconds);
  add_shares(row);
  for (const auto& [name, loss] : outcome.source_losses)
    row.extra.emplace_back("data/" + name + "/loss", loss);
  if (validation) add_validation(row, *validation);
  if (events_) events_->write(row);
  if (!speaks_) return;
  meter_.add(step_tokens(), seconds);
  summary_.step(row);
  sink_->write(row);
  console_->step(row, meter_.eta_seconds(plan_.run.steps - step), is_shown(step));
  std::cout.flush();
}

/// The first steps, because nobody knows yet how long one takes; and no silence of minutes.
bool Reporter::is_shown(std::int64_t step) {
  constexpr int kFirstSteps = 5;
  constexpr double kLongestSilence = 30;
  const double now = metrics::monotonic_seconds();
  const bool shown = step < first_step_ + kFirstSteps || step == plan_.run.steps ||
                     step % plan_.run.metrics.log_freq == 0 || now - shown_at_ >= kLongestSilence;
  if (shown) shown_at_ = now;
  return shown;
}

void Reporter::rewind(std::int64_t step) {
  if (events_) events_->restart(step + 1);
  if (!speaks_) return;
  sink_.reset();
  sink_ = std::make_unique<metrics::JsonlSink>(folder_->metrics_file(), step);
}

void Reporter::note(const std::string& line) {
  if (console_) console_->note(line);
  std::cout.flush();
}

void Reporter::tell_memory() {
  const parallel::MemoryKinds& peak = trainer_.memory_peak().kinds();
  const DeviceMemory device = device_memory(trainer_.stages().options().sharding.device);
  std::string text =
      fmt::format("{:020d}{} on rank {}: {}", peak.total(), metrics::human_bytes(peak.total()),
                  trainer_.mesh().control().rank(), peak.text());
  if (device.total > 0)
    text += fmt::format("; most allocated {}, reserved {}, outside of LibTorch {}, of {}",
                        metrics::human_bytes(device.peak_allocated),
                        metrics::human_bytes(device.peak_reserved),
                        metrics::human_bytes(device.outside()), metrics::human_bytes(device.total));
  const std::vector<std::string> all = comm::all_gather_strings(trainer_.mesh().control(), text);
  if (peak.total() > 0) note("memory at the peak: " + std::ranges::max(all).substr(20));
}

std::string Reporter::prediction(const metrics::RunFigures& measured,
                                 const planner::RunAdvice& advice) const {
  constexpr std::int64_t kLeastSteps = 3;  // the first ones are slower
  if (meter_.steps() < kLeastSteps) return "";
  const std::optional<metrics::Prediction> found = prediction_of(plan_, advice, measured);
  if (!found) return "";
  try {
    metrics::write_prediction(folder_->path(), *found, planner::file_text_of(*advice.machine));
  } catch (const Error& error) {
    log::warning("prediction.json is not written: {}", error.what());
  }
  return lines_of(*found, advice);
}

void Reporter::finish(bool complete, const planner::RunAdvice& advice) {
  comm::Communicator& control = trainer_.mesh().control();
  const std::vector<metrics::Times> times = times_.of_ranks(control);
  const std::int64_t memory =
      comm::all_reduce_scalar(control, trainer_.memory_peak().kinds().total(), comm::Op::max);
  if (!console_) return;
  console_->finish();
  const std::string where = metrics::time_table(times) +
                            metrics::time_notes(times, plan_.run.time_hints) + times_.late_rank() +
                            prediction(measured_figures(meter_, times, memory), advice);
  write_run_pictures(*folder_, trainer_);
  std::cout << (complete ? summary_.text(folder_->path(), kept_by(plan_), where) : where)
            << std::flush;
}

}  // namespace tessera::train
