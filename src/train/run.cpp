#include "tessera/train/run.hpp"

#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>

#include "faults.hpp"
#include "microbatch_tuner.hpp"
#include "reporter.hpp"
#include "tessera/base/log.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/metrics/atomic_file.hpp"
#include "tessera/metrics/folder_lock.hpp"
#include "tessera/parallel/stage_table.hpp"
#include "tessera/train/collective.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/device_copies.hpp"
#include "tessera/train/hf_weights.hpp"
#include "tessera/train/injected_faults.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/samples.hpp"
#include "tessera/train/save_plan.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/signals.hpp"
#include "tessera/train/training_state.hpp"
#include "tessera/train/validator.hpp"
#include "unwatch.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

/// The parts of a run in the order in which they are made; the steps of its life as methods.
class Run {
 public:
  Run(comm::World& world, const config::Resolved& resolved)
      : world_(world),
        resolved_(resolved),
        job_(resolved.job),
        layout_(layout_of(resolved, world.size())),
        device_(choose_device(world)),
        watchdog_(std::in_place, std::chrono::seconds(job_.comm.init_timeout_seconds), world.rank(),
                  end_hanging_job(world)),
        plan_(BatchPlan::make(job_, layout_)),
        injected_(job_.debug.inject_faults, world.size()),
        folder_lock_(lock_folder()),
        samples_(open_job_samples(job_, plan_.global_batch, world.control())),
        model_(checked_model()),
        mesh_(world, layout_, backend_of(job_, device_), injected_.decorate()) {
    trainer_.emplace(job_, model_, mesh_, plan_, *samples_.source, device_, reshard_budget());
  }

  ExitCode execute(const std::vector<std::string>& command_line) {
    make_save_plan();
    comm::set_check_collectives(job_.debug.check_collectives);
    if (world_.rank() == 0) print_job();
    const Position start = begin();
    device_copies_ = make_device_copies(device_);
    saver_.emplace(mesh_.control(), device_copies_.get());
    {
      const comm::Watchdog::Patience patience = slow_disks();
      reporter_.emplace(world_, resolved_, *trainer_, start.step + 1, command_line);
    }
    faults_.emplace(job_, *trainer_, *reporter_, *samples_.source, checkpoint_folder());
    if (samples_.validation) validator_.emplace(job_, model_, mesh_, trainer_->stages(), *samples_.validation);
    announce(start);
    if (layout_.degree(mesh::Axis::pp) > 1 && job_.parallelism.pipeline_parallel_microbatch_size == 0)
      tuner_.emplace(*trainer_, job_, world_.local_size());
    const ExitCode code = loop(start.step);
    watchdog_.reset();
    reporter_->finish(code == ExitCode::done);
    return code;
  }

 private:
  /// Before anything is written there. Throws, on all ranks, where another job owns the folder or it is not writable.
  std::unique_ptr<metrics::FolderLock> lock_folder() {
    const comm::Watchdog::Patience patience = slow_disks();
    std::unique_ptr<metrics::FolderLock> lock;
    on_rank_zero(world_.control(), [&] {
      lock = std::make_unique<metrics::FolderLock>(job_.job.dump_folder);
      return std::string();
    });
    return lock;
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

  /// Half of what the poorest rank has free: the rest is for activations. Collective where a policy asks for it.
  std::int64_t reshard_budget() {
    if (!weighs_memory(job_)) return 0;
    return comm::all_reduce_scalar(mesh_.control(), free_bytes(device_, world_.local_size()) / 2, comm::Op::min);
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
    options.flops_per_second = (device_.is_cuda() ? 4e14 : 3e10) * layout_.degree(mesh::Axis::tp);
    options.bytes_per_second = device_.is_cuda() ? 25e9 : 2e9;
    return options;
  }

  fs::path checkpoint_folder() const { return fs::path(job_.job.dump_folder) / job_.checkpoint.folder; }

  /// Where the run stands: resumed, or at step 0 with initial or loaded weights.
  Position begin() {
    const comm::Watchdog::Patience patience = slow_disks();
    if (const auto position = resume()) return *position;
    if (job_.checkpoint.initial_load_path)
      load_initial();
    else
      initialize();
    return {};
  }

  void initialize() { trainer_->stages().initialize(static_cast<std::uint64_t>(job_.debug.seed)); }

  std::optional<Position> resume() {
    const LoadChoice choice = LoadChoice::of_own(job_.checkpoint, model_);
    if (!job_.checkpoint.enable) return std::nullopt;
    if (choice.is_partial()) initialize();
    return load_state(*trainer_, checkpoint_folder(), choice);
  }

  void load_initial() {
    const LoadChoice choice = LoadChoice::of(job_.checkpoint, model_);
    if (choice.is_partial()) initialize();
    load_weights_of(job_, trainer_->stages().holdings(), model_, mesh_, choice);
  }

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
  }

  void begin_is_over() {
    watchdog_.reset();
    watchdog_.emplace(std::chrono::seconds(job_.comm.train_timeout_seconds), world_.rank(), end_hanging_job(world_));
  }

  ExitCode loop(std::int64_t done) {
    for (std::int64_t step = done; step < job_.training.steps;) {
      const double began = metrics::monotonic_seconds();
      if (folder_lock_) folder_lock_->check();
      comm::Watchdog::heartbeat(step + 1);
      injected_.arm(step + 1, world_.rank());
      if (tuner_) tuner_->before_step();
      cut_batch(step + 1);
      StepOutcome outcome = step_once(step);
      synchronize(device_);
      if (step == done) begin_is_over();
      const double seconds = metrics::monotonic_seconds() - began;
      if (save_plan_) save_plan_->step_took(seconds);
      if (outcome.skipped) finish_save();  // whatever the verdict: what was begun is from before
      const Faults::Verdict verdict = faults_->judge(step + 1, outcome);
      reporter_->measure();
      reporter_->step(step + 1, outcome, seconds, validate(step + 1, verdict, ends(outcome)));
      if (tuner_) tune(seconds);
      note_saved(saver_->poll());
      if (verdict == Faults::Verdict::stop) {
        if (step > 0 && saves()) save(step);  // the weights are those before this step
        finish_save();
        faults_->stop(step + 1);
      }
      if (verdict == Faults::Verdict::go_back) {
        finish_save();
        const comm::Watchdog::Patience patience = slow_disks();
        step = faults_->go_back(step + 1);
        continue;
      }
      faults_->check_replicas(++step);
      if (must_save(step, outcome.flags != 0)) save(step);
      if (ends(outcome) && step < job_.training.steps) return stopped(step, outcome.flags);
    }
    finish_save();
    return decide(ExitCode::done);
  }

  static ExitCode decide(ExitCode code) {
    SignalGuard::decide(static_cast<int>(code));
    return code;
  }

  static bool ends(const StepOutcome& outcome) { return (outcome.flags & ~kSaveWish) != 0; }

  /// Where a step counts and is one of those to be followed by validation, and time is left for it.
  std::optional<ValidationResult> validate(std::int64_t step, Faults::Verdict verdict, bool last) {
    if (last || !validator_ || verdict != Faults::Verdict::go_on || !validator_->due(step)) return std::nullopt;
    const ValidationResult result = validator_->run(step);
    if (save_plan_) save_plan_->validation_took(result.seconds);
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
    const auto flag = [this] { return flag_of(SignalGuard::received()) + wishes(); };
    return trainer_->step(step, flag, [this, step] {
      if (device_copies_) device_copies_->hold_updates();
      injected_.strike(step + 1, world_.rank(), trainer_->stages());
      if (step > 0 || !job_.debug.dump_gradients) return;
      dump_gradients(trainer_->stages().params(), model_, mesh_.control(),
                     fs::path(*job_.debug.dump_gradients) / "gradients.safetensors");
    });
  }

  // Flags are summed over ranks: signals in the low bits, interrupts in the high ones, and between them what rank 0 has
  // planned.
  static constexpr std::int64_t kSignal = 1, kSaveWish = std::int64_t{1} << 30, kTimeIsUp = std::int64_t{1} << 31,
                                kInterrupt = std::int64_t{1} << 32;

  static std::int64_t flag_of(int signal) { return signal == 0 ? 0 : signal == SIGINT ? kInterrupt : kSignal; }

  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  bool saves() const { return job_.checkpoint.enable && !job_.checkpoint.load_only; }

  /// Rank 0 alone looks at the clock; the others learn of it with the step's own reduction.
  void make_save_plan() {
    if (!saves() || world_.rank() != 0) return;
    SavePlan::Options options;
    if (job_.checkpoint.interval == 0)
      options.failures = job_.checkpoint.mtbf_hours > 0 ? job_.checkpoint.mtbf_hours * 3600
                                                        : usual_seconds_between_failures(world_.size());
    options.end = job_end_from_environment();
    save_plan_.emplace(options, now());
  }

  std::int64_t wishes() const {
    if (!save_plan_) return 0;
    const double time = now();
    return (save_plan_->is_due(time) ? kSaveWish : 0) + (save_plan_->is_last(time) ? kTimeIsUp : 0);
  }

  bool must_save(std::int64_t step, bool wanted) const {
    if (!saves()) return false;
    const std::int64_t interval = job_.checkpoint.interval;
    return wanted || step == job_.training.steps || (interval > 0 && step % interval == 0) ||
           (step == 1 && job_.checkpoint.enable_first_step_checkpoint);
  }

  /// While ranks wait for the slowest disk.
  comm::Watchdog::Patience slow_disks() const {
    return comm::Watchdog::Patience(std::chrono::seconds(job_.comm.save_timeout_seconds));
  }

  void finish_save() {
    const comm::Watchdog::Patience patience = slow_disks();
    note_saved(saver_->finish());
  }

  void save(std::int64_t step) {
    const comm::Watchdog::Patience patience = slow_disks();
    const double began = metrics::monotonic_seconds();
    finish_save();
    if (save_plan_) save_plan_->save_began(now());
    const Position position{step, trainer_->first_sample(step)};
    if (job_.checkpoint.async_mode == "disabled")
      note_saved(save_state(*saver_, *trainer_, resolved_, checkpoint_folder(), position));
    else
      begin_save_state(*saver_, *trainer_, resolved_, checkpoint_folder(), position);
    reporter_->spent_on_checkpoints(metrics::monotonic_seconds() - began);
  }

  void note_saved(const std::optional<checkpoint::SaveResult>& result) {
    if (!result) return;
    const bool held = job_.checkpoint.async_mode == "disabled";
    if (save_plan_) save_plan_->save_took(held ? result->seconds : result->blocked_seconds, result->seconds);
    if (result->kept_existing)
      return log::warning("{} exists and is kept; this run wrote nothing there", result->folder.string());
    reporter_->note(fmt::format("checkpoint {} ({:.1f} MB in {:.2f} s{})", result->folder.string(),
                                static_cast<double>(result->bytes) / 1e6, result->seconds,
                                held ? "" : fmt::format("; training waited {:.3f} s", result->blocked_seconds)));
  }

  ExitCode stopped(std::int64_t step, std::int64_t flags) {
    finish_save();
    const ExitCode code = decide(saves()               ? ExitCode::requeue
                                 : flags >= kInterrupt ? ExitCode::interrupted
                                                       : ExitCode::terminated);
    const bool time_is_up = (flags & kTimeIsUp) != 0;
    reporter_->note(fmt::format("stopped {} after step {}{}", time_is_up ? "before the allocation ends" : "by a signal",
                                step, saves() ? "; run the same command to resume" : "; nothing was saved"));
    return code;
  }

  comm::World& world_;
  const config::Resolved& resolved_;
  const config::JobConfig& job_;
  mesh::Layout layout_;
  at::Device device_;
  std::optional<comm::Watchdog> watchdog_;  ///< from the first call that waits for others
  BatchPlan plan_;
  InjectedFaults injected_;
  const std::unique_ptr<metrics::FolderLock> folder_lock_;  ///< on rank 0
  Samples samples_;
  model::Model model_;
  mesh::DeviceMesh mesh_;
  const Unwatch unwatch_{watchdog_};
  std::optional<Trainer> trainer_;
  std::optional<MicrobatchTuner> tuner_;  ///< until it has chosen
  std::optional<Validator> validator_;    ///< if the job validates
  std::optional<Reporter> reporter_;
  std::optional<Faults> faults_;
  std::unique_ptr<DeviceCopies> device_copies_;  ///< on a GPU
  std::optional<checkpoint::Saver> saver_;
  std::optional<SavePlan> save_plan_;  ///< on rank 0 of a job that saves
};

}  // namespace

ExitCode run_training(comm::World& world, const config::Resolved& resolved,
                      const std::vector<std::string>& command_line) {
  const SignalGuard signals;
  use_share_of_cores(world);
  Run run(world, resolved);
  return run.execute(command_line);
}

}  // namespace tessera::train
