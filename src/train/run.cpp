// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/run.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

#include "beginning.hpp"
#include "memory_check.hpp"
#include "memory_report.hpp"
#include "run_context.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/out_of_memory.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/plan/stage_table.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/signals.hpp"
#include "training_loop.hpp"

namespace tessera::train {
namespace {

/// Half of the least free memory of any rank, once all ranks have weights, gradients and moments,
/// and after what a step takes for gradients and communication: the rest is for activations.
/// Collective.
std::int64_t reshard_budget(RunContext& run, Trainer& trainer) {
  comm::Communicator& control = run.mesh.control();
  control.barrier();  // others may share the memory
  const std::int64_t scratch =
      trainer.stages().scratch_bytes(run.plan.batch().microbatches_a_step());
  const std::int64_t free = free_bytes(run.device, run.own.ranks) - scratch;
  return comm::all_reduce_scalar(control, std::max<std::int64_t>(0, free / 2), comm::Op::min);
}

/// What is assumed of a machine to weigh a cut: half of a recent GPU and a 200 Gbit/s network, or a
/// host core and its memory.
plan::StageTableOptions stage_table_options(const RunContext& run) {
  const bool host = run.device.is_cpu();
  plan::StageTableOptions options;
  const plan::BatchPlan& batch = run.plan.batch();
  options.seq = run.plan.data.seq_len;
  options.microbatch_tokens = batch.microbatch_rows * batch.cut.positions();
  options.element_bytes = static_cast<std::int64_t>(size_of(run.plan.precision.compute));
  options.flops_per_second = (host ? 3e10 : 4e14) * run.plan.layout.degree(mesh::Axis::tp);
  options.bytes_per_second = host ? 2e9 : 25e9;
  return options;
}

void print_job(RunContext& run, Trainer& trainer) {
  if (run.plan.run.prints_job) std::cout << run.plan.run.toml;
  std::cout << run.mesh.overview();
  if (run.plan.layout.degree(mesh::Axis::pp) > 1)
    std::cout << plan::stage_table(run.model, trainer.stage_ranges(), trainer.stages().map(),
                                   stage_table_options(run));
  std::cout << std::flush;
}

void announce(RunContext& run, Reporter& reporter, const LoadedState& start) {
  const plan::JobPlan& plan = run.plan;
  const plan::BatchPlan& batch = plan.batch();
  if (plan.run.job_file && run.world.rank() == 0) {
    constexpr FileErrors kErrors{ExitCode::environment, "job.save_config_file"};
    make_folders(plan.run.job_file->parent_path(), kErrors);
    write_file_atomically(*plan.run.job_file, plan.run.toml, kErrors);
  }
  reporter.note(fmt::format("{}: {:.1f} M parameters, {} on {}, global batch {} x {} tokens",
                            run.model.name, static_cast<double>(run.model.parameter_count()) / 1e6,
                            plan.layout.to_string(), run.device.str(), batch.global_batch,
                            plan.data.seq_len));
  if (run.device.is_cpu()) reporter.note("kernels: " + kernels::host_engines());
  if (plan.linears.rounds()) {
    const bool by_device =
        run.device.is_cuda() && plan.linears.wants_8bit_products(plan.precision.compute);
    reporter.note(plan.linears.summary(*plan.model.spec, by_device));
  }
  if (plan.linears.experts.rounds()) reporter.note(plan.linears.experts.summary(*plan.model.spec));
  if (plan.recompute.offload && run.device.is_cpu() && run.world.rank() == 0)
    log::warning("activation_checkpoint.offload has no effect: the job trains on the host");
  const int ranks = plan.layout.degree(mesh::Axis::pp);
  if (batch.microbatches < ranks && run.world.rank() == 0)
    log::warning(
        "{} microbatches do not fill a pipeline of {} ranks; {} gives more", batch.microbatches,
        ranks,
        batch.microbatch_rows > 1
            ? fmt::format("a smaller pipeline_parallel_microbatch_size ({})", batch.microbatch_rows)
            : "a larger training.local_batch_size");
  if (!start.folder.empty())
    reporter.note(fmt::format(
        "resumed after step {} from {}{}", start.state.step, start.folder.parent_path().string(),
        start.left_out.empty() ? "" : fmt::format(", without {}", start.left_out)));
  for (const std::string& change : {start.schedule_change, start.attention_change})
    if (!change.empty()) reporter.note(change);
  const plan::LoadPlan& load = plan.load;
  if (start.own && load.from && load.initial.left_out() != load.own.left_out())
    reporter.note(
        "checkpoint.exclude_from_loading acts on a resume for the dataloader alone: the rest "
        "is for the first load, from checkpoint.initial_load_path");
}

/// Calls `failed` when `body` throws: once, in the innermost of nested calls, while all that this
/// one made still exists. Says before what took the memory, where the exception is a GPU's that ran
/// out of it.
class FailureTeller {
 public:
  explicit FailureTeller(const OnFailure& failed) : failed_(failed) {}

  template <class Body>
  ExitCode around(Trainer* trainer, Body body) {
    try {
      try {
        return body();
      } catch (const std::exception& error) {
        throw_if_out_of_memory(error, trainer);
        throw;
      }
    } catch (...) {
      if (!std::exchange(told_, true)) failed_();
      throw;
    }
  }

 private:
  const OnFailure& failed_;
  bool told_ = false;
};

/// On rank 0 all that the planner says. Every rank keeps what helps against missing memory, so that
/// one that runs out of it has the words. Collective.
planner::RunAdvice agreed_advice(RunContext& run, const Adviser& adviser) {
  planner::RunAdvice advice;
  keep_memory_advice(comm::on_rank_zero(run.world.control(), [&] {
    advice = adviser({!run.device.is_cpu(), run.world.local_size(),
                      static_cast<double>(free_bytes(run.device, run.own.ranks))});
    return advice.against_memory;
  }));
  return advice;
}

/// The watchdog may ask a trainer for as long as this lives.
class Watched {
 public:
  Watched(RunContext& run, Trainer& trainer) : run_(run) { run_.trainer = &trainer; }
  ~Watched() { run_.trainer = nullptr; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  RunContext& run_;
};

LoadedState begin(RunContext& run, Trainer& trainer) {
  const comm::Watchdog::Patience patience = run.slow_disks();
  return begin_state(run.plan, run.mesh, trainer);
}

ExitCode train(RunContext& run, Trainer& trainer, const planner::RunAdvice& advice,
               const std::vector<std::string>& command_line, FailureTeller& teller) {
  if (run.plan.sharding.weighs_memory())
    trainer.stages().set_reshard_budget(reshard_budget(run, trainer));
  SaveAndStop policy(run.plan, run.world.rank(), run.world.size());
  comm::set_check_collectives(run.plan.comm.check_collectives);
  if (run.world.rank() == 0) print_job(run, trainer);
  const LoadedState start = begin(run, trainer);
  if (!run.plan.save.seed_only)
    inputs::require_samples(trainer.source(), run.plan.run.steps, trainer.batch_plan().global_batch,
                            {trainer.state().step, trainer.state().samples});
  Reporter reporter(run.world, run.plan, trainer, start, command_line);
  std::optional<TrainingLoop> loop(std::in_place, run, trainer, policy, reporter);
  return teller.around(&trainer, [&] {
    announce(run, reporter, start);
    const ExitCode code = run.plan.save.seed_only ? loop->save_seed() : loop->run();
    loop.reset();
    reporter.tell_memory();
    end_watch(run.watchdog, run.world, run.plan);
    reporter.finish(code == ExitCode::done && !run.plan.save.seed_only, advice);
    return code;
  });
}

}  // namespace

ExitCode run_training(comm::World& world, const plan::JobPlan& plan, const Adviser& adviser,
                      const std::vector<std::string>& command_line, const OnFailure& failed) {
  const SignalGuard signals;
  use_share_of_cores(world);
  keep_freed_memory();
  kernels::choose_host_kernels(plan.device.kernels);
  FailureTeller teller(failed);
  return teller.around(nullptr, [&] {
    planner::RunAdvice advice;
    RunContext run(world, plan, [&](RunContext& begun) {
      advice = agreed_advice(begun, adviser);
      check_memory(plan, world, begun.device, begun.own.ranks, true);
    });
    return teller.around(nullptr, [&] {
      Trainer trainer(plan, run.model, run.mesh, *run.samples.source, run.device);
      const Watched watched(run, trainer);
      return teller.around(&trainer,
                           [&] { return train(run, trainer, advice, command_line, teller); });
    });
  });
}

}  // namespace tessera::train
