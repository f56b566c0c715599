#include "tessera/train/run.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "beginning.hpp"
#include "faults.hpp"
#include "hang_watch.hpp"
#include "job_saves.hpp"
#include "memory_report.hpp"
#include "microbatch_tuner.hpp"
#include "reporter.hpp"
#include "step_watch.hpp"
#include "take_folder.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/rank_record.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/metrics/atomic_file.hpp"
#include "tessera/metrics/phase_trace.hpp"
#include "tessera/parallel/stage_table.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/collective.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/hf_weights.hpp"
#include "tessera/train/injected_faults.hpp"
#include "tessera/train/memory_need.hpp"
#include "tessera/train/samples.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/signals.hpp"
#include "tessera/train/training_state.hpp"
#include "tessera/train/validator.hpp"
#include "wishes.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

/// The parts of a run in the order in which they are made; the steps of its life as methods. What fails once there is a
/// mesh fails in a method, so that the failure can be told while all parts are there.
class Run {
 public:
  Run(comm::World& world, const config::Resolved& resolved)
      : world_(world),
        resolved_(resolved),
        job_(resolved.job),
        layout_(layout_of(resolved, world.size())),
        own_(watched_device()),
        device_(with_arithmetic(job_, own_.device)),
        plan_(BatchPlan::make(job_, layout_)),
        injected_(job_.debug.inject_faults, world.size(), device_),
        folder_lock_(take_folder()),
        samples_(open_job_samples(job_, plan_.global_batch, world.control())),
        model_(checked_model()),
        mesh_(world, layout_, backend_of(job_, device_), ordered_sums_of(job_, device_, injected_.decorate()),
              memory_of(device_)) {}

  ExitCode execute(const std::vector<std::string>& command_line) {
    check_memory(job_, model_, mesh_, plan_, stage_options_of(job_, plan_, device_), world_, own_.ranks);
    trainer_.emplace(job_, model_, mesh_, plan_, *samples_.source, device_);
    if (weighs_memory(job_)) trainer_->stages().set_reshard_budget(reshard_budget());
    wishes_.emplace(job_, world_.rank(), world_.size());
    comm::set_check_collectives(job_.debug.check_collectives);
    if (world_.rank() == 0) print_job();
    Position start;
    {
      const comm::Watchdog::Patience patience = slow_disks();
      start = begin_state(job_, model_, mesh_, *trainer_, checkpoint_folder());
      reporter_.emplace(world_, resolved_, *trainer_, start.step + 1, command_line);
    }
    saves_.emplace(resolved_, *trainer_, mesh_.control(), device_, *wishes_, *reporter_, checkpoint_folder());
    faults_.emplace(job_, *trainer_, *reporter_, *samples_.source, checkpoint_folder());
    if (samples_.validation) validator_.emplace(job_, model_, mesh_, trainer_->stages(), *samples_.validation);
    announce(start);
    note_on_record(start);
    trace_steps();
    if (world_.rank() == 0)
      step_watch_.emplace([this] { return trainer_->whereabouts(); },
                          [](const std::string& line) { log::info("{}", line); });
    if (layout_.degree(mesh::Axis::pp) > 1 && job_.parallelism.pipeline_parallel_microbatch_size == 0)
      tuner_.emplace(*trainer_, job_, own_.ranks);
    const ExitCode code = job_.checkpoint.create_seed_checkpoint ? save_seed(start) : loop(start.step);
    step_watch_.reset();
    reporter_->tell_memory();
    watchdog_.reset();
    reporter_->finish(code == ExitCode::done);
    return code;
  }

  Trainer* trainer() { return trainer_ ? &*trainer_ : nullptr; }

 private:
  void watch(std::int64_t limit_seconds) {
    watch_for_hangs(watchdog_, world_, job_, limit_seconds, [this] { return held_allocation_error(trainer()); });
  }

  /// The first call that waits for others.
  OwnDevice watched_device() {
    watch(job_.comm.init_timeout_seconds);
    return choose_device(world_, job_.job, wants_nccl(job_));
  }

  std::unique_ptr<metrics::FolderLock> take_folder() {
    const comm::Watchdog::Patience patience = slow_disks();
    return train::take_folder(world_.control(), job_);
  }

  /// What does not fit is said before communicators or weights take any memory.
  model::Model checked_model() const {
    model::Model model = model_of(job_, samples_.vocab, job_.training.seq_len, device_);
    check_job_fits(job_, model, layout_, plan_);
    if (job_.validation.enable)
      check_model_fits(model, layout_, BatchPlan::of_validation(job_, layout_),
                       !job_.parallelism.disable_sequence_parallel);
    for (const std::string& entry : job_.parallelism.pipeline_parallel_microbatch_steps)
      check_job_fits(job_, model, layout_, BatchPlan::make(job_, layout_, config::microbatch_step(entry)->size));
    return model;
  }

  /// Half of what the poorest rank has free once all ranks have weights, gradients and moments, and after what a step
  /// takes for gradients and communication: the rest is for activations. Collective.
  std::int64_t reshard_budget() {
    comm::Communicator& control = mesh_.control();
    control.barrier();  // others may share the memory
    const std::int64_t scratch = trainer_->stages().scratch_bytes(plan_.microbatches_a_step());
    const std::int64_t free = free_bytes(device_, own_.ranks) - scratch;
    return comm::all_reduce_scalar(control, std::max<std::int64_t>(0, free / 2), comm::Op::min);
  }

  void print_job() {
    if (job_.job.print_config) std::cout << resolved_.to_toml();
    std::cout << mesh_.overview();
    if (layout_.degree(mesh::Axis::pp) > 1)
      std::cout << parallel::stage_table(model_, trainer_->stage_ranges(), trainer_->stages().map(),
                                         stage_table_options());
    std::cout << std::flush;
  }

  /// What is assumed of a machine to weigh a cut: half of a recent GPU and a 200 Gbit/s network, or a host core and its
  /// memory.
  parallel::StageTableOptions stage_table_options() const {
    parallel::StageTableOptions options;
    options.seq = job_.training.seq_len;
    options.microbatch_tokens = plan_.microbatch_rows * plan_.cut.positions();
    options.element_bytes = static_cast<std::int64_t>(at::elementSize(precision_of(job_).compute));
    options.flops_per_second = (device_.is_cpu() ? 3e10 : 4e14) * layout_.degree(mesh::Axis::tp);
    options.bytes_per_second = device_.is_cpu() ? 2e9 : 25e9;
    return options;
  }

  fs::path checkpoint_folder() const { return fs::path(job_.job.dump_folder) / job_.checkpoint.folder; }

  void announce(const Position& start) {
    if (job_.job.save_config_file && world_.rank() == 0)
      metrics::write_file_atomically(fs::path(job_.job.dump_folder) / *job_.job.save_config_file, resolved_.to_toml());
    reporter_->note(fmt::format("{}: {:.1f} M parameters, {} on {}, global batch {} x {} tokens", model_.name,
                                static_cast<double>(model_.parameter_count()) / 1e6, layout_.to_string(), device_.str(),
                                plan_.global_batch, job_.training.seq_len));
    if (device_.is_cpu()) reporter_->note("kernels: " + kernels::host_engines());
    if (const int ranks = layout_.degree(mesh::Axis::pp); plan_.microbatches < ranks && world_.rank() == 0)
      log::warning(
          "{} microbatches do not fill a pipeline of {} ranks; a smaller pipeline_parallel_microbatch_size ({}) gives "
          "more",
          plan_.microbatches, ranks, plan_.microbatch_rows);
    if (start.step > 0)
      reporter_->note(fmt::format("resumed after step {} from {}{}", start.step, checkpoint_folder().string(),
                                  start.left_out.empty() ? "" : fmt::format(", without {}", start.left_out)));
    if (!start.schedule_change.empty()) reporter_->note(start.schedule_change);
  }

  /// A look costs a GPU nothing. On the host it takes as long as a small operator.
  bool looks_at_memory(std::int64_t step) const { return !device_.is_cpu() || step < 3 || step % 100 == 0; }

  /// For `tessera launch`, should this rank be killed.
  void note_on_record(const Position& start) {
    if (start.step == 0) return;
    comm::rank_record::note_step(start.step);
    comm::rank_record::note_saved(start.step);
  }

  void trace_steps() {
    const config::Profiling& p = job_.profiling;
    if (!p.enable_profiling) return;
    metrics::TraceOptions options{fs::path(job_.job.dump_folder) / p.save_traces_folder, p.profile_freq,
                                  p.profiler_active, world_.rank()};
    trace_.emplace(std::move(options), trainer_->timer());
  }

  void begin_is_over() { watch(job_.comm.train_timeout_seconds); }

  ExitCode loop(std::int64_t done) {
    for (std::int64_t step = done; step < job_.training.steps;) {
      const double began = metrics::monotonic_seconds();
      if (folder_lock_) folder_lock_->check();
      comm::Watchdog::heartbeat(step + 1);
      if (step_watch_) step_watch_->begin(step + 1);
      injected_.arm(step + 1, world_.rank());
      if (tuner_) tuner_->before_step();
      cut_batch(step + 1);
      trainer_->memory_peak().watch(looks_at_memory(step - done));
      if (trace_) trace_->begin_step(step + 1);
      StepOutcome outcome = step_once(step);
      comm::Watchdog::at("", "behind the optimizer");
      synchronize(device_);
      if (trace_) trace_->end_step(step + 1);
      retries_.warn_once(world_, device_);
      if (step == done) begin_is_over();
      const double seconds = metrics::monotonic_seconds() - began;
      if (auto& plan = wishes_->plan()) plan->step_took(seconds);
      if (outcome.skipped) saves_->finish();  // whatever the verdict: what was begun is from before
      const Faults::Verdict verdict = faults_->judge(step + 1, outcome);
      reporter_->measure();
      reporter_->step(step + 1, outcome, seconds, validate(step + 1, verdict, Wishes::ends(outcome.flags)));
      if (tuner_) tune(seconds);
      saves_->poll();
      if (verdict == Faults::Verdict::stop) {
        if (step > 0 && wishes_->saves()) saves_->save(step);  // the weights are those before this step
        saves_->finish();
        faults_->stop(step + 1);
      }
      if (verdict == Faults::Verdict::go_back) {
        saves_->finish();
        const comm::Watchdog::Patience patience = slow_disks();
        step = faults_->go_back(step + 1);
        continue;
      }
      faults_->check_replicas(++step);
      comm::rank_record::note_step(step);
      if (wishes_->must_save(step, outcome.flags)) saves_->save(step);
      if (Wishes::ends(outcome.flags) && step < job_.training.steps) return stopped(step, outcome.flags);
    }
    saves_->finish();
    return decide(ExitCode::done);
  }

  static ExitCode decide(ExitCode code) {
    SignalGuard::decide(static_cast<int>(code));
    return code;
  }

  /// Where a step counts and is one of those to be followed by validation, and time is left for it.
  std::optional<ValidationResult> validate(std::int64_t step, Faults::Verdict verdict, bool last) {
    if (last || !validator_ || verdict != Faults::Verdict::go_on || !validator_->due(step)) return std::nullopt;
    const ValidationResult result = validator_->run(step);
    if (auto& plan = wishes_->plan()) plan->validation_took(result.seconds);
    reporter_->note(fmt::format("step {}: validation loss {:.4f} over {} tokens in {:.2f} s", step, result.loss,
                                result.tokens, result.seconds));
    return result;
  }

  /// As parallelism.pipeline_parallel_microbatch_steps says.
  void cut_batch(std::int64_t step) {
    const auto& sizes = job_.parallelism.pipeline_parallel_microbatch_steps;
    if (sizes.empty() || layout_.degree(mesh::Axis::pp) == 1) return;
    const std::int64_t rows = config::microbatch_size_at(sizes, step, plan_.microbatch_rows);
    if (rows == trainer_->batch_plan().microbatch_rows) return;
    trainer_->set_microbatch_rows(rows);
    reporter_->note(fmt::format("microbatches of {} sequences from step {} on", rows, step));
  }

  void tune(double seconds) {
    const std::string choice = tuner_->after_step(seconds);
    if (choice.empty()) return;
    reporter_->note(choice);
    tuner_->before_step();
    tuner_.reset();
  }

  StepOutcome step_once(std::int64_t step) {
    return trainer_->step(
        step, [this] { return wishes_->flags(); },
        [this, step] {
          saves_->hold_updates();
          injected_.strike(step + 1, world_.rank(), trainer_->stages());
          if (step > 0 || !job_.debug.dump_gradients) return;
          dump_gradients(trainer_->stages().params(), model_, mesh_.control(),
                         fs::path(*job_.debug.dump_gradients) / "gradients.safetensors");
        });
  }

  /// While ranks wait for the slowest disk.
  comm::Watchdog::Patience slow_disks() const {
    return comm::Watchdog::Patience(std::chrono::seconds(job_.comm.save_timeout_seconds));
  }

  ExitCode save_seed(const Position& start) {
    require(start.step == 0, ExitCode::usage,
            "{} holds a checkpoint of step {}; a seed is made in a folder without checkpoints",
            checkpoint_folder().string(), start.step);
    saves_->save(0);
    saves_->finish();
    return decide(ExitCode::done);
  }

  ExitCode stopped(std::int64_t step, std::int64_t flags) {
    saves_->finish();
    const ExitCode code = decide(wishes_->code_of_end(flags));
    const char* why = Wishes::time_is_up(flags) ? "before the allocation ends" : "by a signal";
    reporter_->note(fmt::format("stopped {} after step {}{}", why, step,
                                wishes_->saves() ? "; run the same command to resume" : "; nothing was saved"));
    return code;
  }

  comm::World& world_;
  const config::Resolved& resolved_;
  const config::JobConfig& job_;
  mesh::Layout layout_;
  std::optional<comm::Watchdog> watchdog_;
  OwnDevice own_;
  at::Device device_;
  BatchPlan plan_;
  InjectedFaults injected_;
  const std::unique_ptr<metrics::FolderLock> folder_lock_;  ///< on rank 0
  Samples samples_;
  model::Model model_;
  mesh::DeviceMesh mesh_;
  std::optional<Trainer> trainer_;
  std::optional<MicrobatchTuner> tuner_;      ///< until it has chosen
  std::optional<Validator> validator_;        ///< if the job validates
  std::optional<metrics::PhaseTrace> trace_;  ///< if the job is profiled
  std::optional<Reporter> reporter_;
  std::optional<Faults> faults_;
  std::optional<StepWatch> step_watch_;  ///< on rank 0, while it trains
  std::optional<Wishes> wishes_;
  std::optional<JobSaves> saves_;
  AllocationRetries retries_;
};

}  // namespace

ExitCode run_training(comm::World& world, const config::Resolved& resolved,
                      const std::vector<std::string>& command_line, const OnFailure& failed) {
  const SignalGuard signals;
  use_share_of_cores(world);
  std::optional<Run> run;
  try {
    try {
      return run.emplace(world, resolved).execute(command_line);
    } catch (const std::exception& error) {
      if (run) throw_if_out_of_memory(error, run->trainer());
      throw;
    }
  } catch (...) {
    failed();
    throw;
  }
}

}  // namespace tessera::train
