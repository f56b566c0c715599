// SPDX-License-Identifier: Apache-2.0
#include "run_context.hpp"

#include "hang_watch.hpp"
#include "memory_report.hpp"
#include "take_folder.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

/// The first call that waits for others.
OwnDevice watched_device(RunContext& run) {
  run.watch(run.job.comm.init_timeout_seconds);
  return choose_device(run.world, run.job.job, wants_nccl(run.job));
}

std::unique_ptr<metrics::FolderLock> patient_lock(RunContext& run) {
  const comm::Watchdog::Patience patience = run.slow_disks();
  return take_folder(run.world.control(), run.job);
}

model::Model checked_model(const RunContext& run) {
  const config::JobConfig& job = run.job;
  model::Model model = model_of(job, run.samples.vocab, job.training.seq_len, run.device);
  check_job_fits(job, model, run.layout, run.plan);
  if (job.validation.enable)
    check_model_fits(model, run.layout, BatchPlan::of_validation(job, run.layout),
                     !job.parallelism.disable_sequence_parallel);
  for (const std::string& entry : job.parallelism.pipeline_parallel_microbatch_steps)
    check_job_fits(job, model, run.layout,
                   BatchPlan::make(job, run.layout, config::microbatch_step(entry)->size));
  return model;
}

}  // namespace

RunContext::RunContext(comm::World& ranks, const config::Resolved& with)
    : world(ranks),
      resolved(with),
      job(with.job),
      layout(layout_of(with, ranks.size())),
      own(watched_device(*this)),
      device(with_arithmetic(job, own.device)),
      plan(BatchPlan::make(job, layout)),
      injected(job.debug.inject_faults, ranks.size(), device),
      folder_lock(patient_lock(*this)),
      samples(open_job_samples(job, plan.global_batch, ranks.control())),
      model(checked_model(*this)),
      mesh(ranks, layout, backend_of(job, device),
           ordered_sums_of(job, device, injected.decorate()), memory_of(device)) {}

void RunContext::watch(std::int64_t limit_seconds) {
  watch_for_hangs(watchdog, world, job, limit_seconds,
                  [this] { return held_allocation_error(trainer); });
}

}  // namespace tessera::train
