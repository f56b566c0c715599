// SPDX-License-Identifier: Apache-2.0
#include "run_context.hpp"

#include <utility>

#include "hang_watch.hpp"
#include "memory_report.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

FolderLocks patient_locks(RunContext& run) {
  const comm::Watchdog::Patience patience = run.slow_disks();
  return take_folders(run.world.control(), run.plan);
}

inputs::Samples samples_after(const std::function<void(RunContext&)>& check, RunContext& run) {
  check(run);
  return inputs::open_samples(run.plan.data, run.plan.batch().global_batch, run.world.control());
}

}  // namespace

OwnDevice watched_device(std::optional<comm::Watchdog>& watchdog, comm::World& world,
                         const plan::JobPlan& plan, std::function<std::optional<Error>()> look) {
  watch_for_hangs(watchdog, world, plan.comm, plan.comm.init_timeout_seconds, std::move(look));
  const OwnDevice own = choose_device(world, plan.device, plan.comm.wants_nccl());
  require(own.device.is_cpu() || multiplies_float8(own.device) ||
              !plan.linears.wants_8bit_products(plan.precision.compute),
          ExitCode::environment,
          "{} does not multiply in float8: set quantize.linear.float8.emulate = true, or leave "
          "quantize.linear.float8 out of model.converters",
          device_name(own.device));
  return own;
}

void end_watch(std::optional<comm::Watchdog>& watchdog, const comm::World& world,
               const plan::JobPlan& plan) {
  watchdog.reset();
  const std::chrono::seconds patience(plan.comm.save_timeout_seconds);  // rank 0 may write
  comm::end_at_the_latest(
      patience, static_cast<int>(ExitCode::communication),
      fmt::format("rank {} on {}: the job is done, and has not ended for {} s; look at the network",
                  world.rank(), world.host(), patience.count()));
}

RunContext::RunContext(comm::World& ranks, const plan::JobPlan& with,
                       const std::function<void(RunContext&)>& check)
    : world(ranks),
      plan(with),
      own(watched_device(watchdog, world, plan, [this] { return held_allocation(); })),
      device(with_arithmetic(plan.arithmetic, own.device)),
      injected(plan.faults.injected, device),
      folder_locks(patient_locks(*this)),
      samples(samples_after(check, *this)),
      model(model_of(plan, device)),
      mesh(ranks, plan.layout, backend_of(plan, device),
           ordered_sums_of(plan.arithmetic, device, injected.decorate()),
           parallel::memory_of(device)) {}

void RunContext::watch(std::int64_t limit_seconds) {
  watch_for_hangs(watchdog, world, plan.comm, limit_seconds, [this] { return held_allocation(); });
}

std::optional<Error> RunContext::held_allocation() const { return held_allocation_error(trainer); }

}  // namespace tessera::train
