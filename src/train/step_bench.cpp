// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/step_bench.hpp"

#include <optional>

#include "drawn_tokens.hpp"
#include "memory_check.hpp"
#include "memory_report.hpp"
#include "run_context.hpp"
#include "run_times.hpp"
#include "speed.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/plan/unknowns.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

/// The first step allocates, and the second one is still slower than later ones.
constexpr int kWarmUp = 2;

/// What communicates: all of it is there until the failure of any part has been reported.
class StepBench {
 public:
  StepBench(comm::World& world, const plan::JobPlan& plan)
      : world_(world),
        plan_(plan),
        own_(watched_device(watchdog_, world, plan)),
        device_(with_arithmetic(plan.arithmetic, own_.device)),
        model_(model_of(plan, device_)),
        mesh_(world, plan.layout, backend_of(plan, device_),
              ordered_sums_of(plan.arithmetic, device_), parallel::memory_of(device_)),
        source_(plan.data.seq_len, model_.dimensions.vocab) {}

  BenchedStep run(int steps) try {
    check_memory(plan_, world_, device_, own_.ranks, true);
    trainer_.emplace(plan_, model_, mesh_, source_, device_);
    trainer_->stages().initialize(plan_.run.seed);
    const BenchedStep found = measured(*trainer_, steps);
    end_watch(watchdog_, world_, plan_);
    return found;
  } catch (const std::exception& error) {
    throw_if_out_of_memory(error, trainer_ ? &*trainer_ : nullptr);
    throw;
  }

 private:
  BenchedStep measured(Trainer& trainer, int steps) {
    trainer.memory_peak().watch(true);
    for (int step = 0; step < kWarmUp; ++step) trainer.step();
    trainer.memory_peak().watch(false);
    comm::Communicator& all = world_.control();
    all.barrier();
    RunTimes times(trainer);
    metrics::Window window(static_cast<std::size_t>(steps));
    for (int step = 0; step < steps; ++step) {
      const double began = metrics::monotonic_seconds();
      times.begin_step();
      trainer.step();
      times.end_step();
      window.add(metrics::monotonic_seconds() - began);
    }
    const double tokens =
        static_cast<double>(trainer.batch_plan().global_batch * plan_.data.seq_len);
    BenchedStep found;
    found.seconds = comm::all_reduce_scalar(all, window.median(), comm::Op::max);
    found.tokens_per_second = tokens / found.seconds;
    found.flops_per_second =
        found.tokens_per_second / world_.size() * flops_of(model_, plan_.data.seq_len).full;
    found.peak = peak_of(plan_.run.metrics, trainer.stages().options(), world_.local_size());
    found.memory_bytes =
        comm::all_reduce_scalar(all, trainer.memory_peak().kinds().total(), comm::Op::max);
    found.of_ranks = times.of_ranks(all);
    return found;
  }

  comm::World& world_;
  const plan::JobPlan& plan_;
  std::optional<comm::Watchdog> watchdog_;
  OwnDevice own_;
  at::Device device_;
  model::Model model_;
  mesh::DeviceMesh mesh_;
  DrawnTokens source_;
  std::optional<Trainer> trainer_;
};

}  // namespace

BenchedStep bench_step(comm::World& world, const plan::JobPlan& plan, int steps,
                       const OnFailure& failed) {
  const std::string first = plan::measured_first(plan);
  require(first.empty(), ExitCode::usage, "bench step measures one choice, but {}; set that key",
          first);
  use_share_of_cores(world);
  keep_freed_memory();
  kernels::choose_host_kernels(plan.device.kernels);
  std::optional<StepBench> bench;
  try {
    return bench.emplace(world, plan).run(steps);
  } catch (...) {
    failed();
    throw;
  }
}

}  // namespace tessera::train
