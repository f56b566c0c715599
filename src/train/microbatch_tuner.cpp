// SPDX-License-Identifier: Apache-2.0
#include "microbatch_tuner.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/metrics/memory.hpp"
#include "tessera/schedule/action.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

std::int64_t peak_bytes(at::Device device) {
  return device.is_cpu() ? metrics::process_memory().peak_resident_bytes
                         : device_memory(device).peak_allocated;
}

bool goes(const Trainer& trainer, const mesh::Layout& layout, const config::JobConfig& job,
          std::int64_t rows) {
  try {
    check_job_fits(job, trainer.model(), layout, BatchPlan::make(job, layout, rows));
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::int64_t> sizes_of(Trainer& trainer, const config::JobConfig& job) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t rows = 1; rows <= job.training.local_batch_size; ++rows)
    if (job.training.local_batch_size % rows == 0 &&
        goes(trainer, trainer.mesh().layout(), job, rows))
      sizes.push_back(rows);
  require(!sizes.empty(), ExitCode::usage,
          "parallelism.pipeline_parallel_microbatch_size = \"auto\": no divisor of "
          "local_batch_size {} works with {} "
          "on this mesh; change the batch size or the schedule",
          job.training.local_batch_size, job.parallelism.pipeline_parallel_schedule);
  return sizes;
}

}  // namespace

MicrobatchTuner::MicrobatchTuner(Trainer& trainer, const config::JobConfig& job, int sharers)
    : trainer_(trainer),
      job_(job),
      sharers_(sharers),
      trial_(sizes_of(trainer, job)),
      bytes_before_(peak_bytes(trainer.stages().options().sharding.device)) {}

double MicrobatchTuner::kept_rows(std::int64_t rows) const {
  const mesh::Layout& layout = trainer_.mesh().layout();
  const auto lists =
      pipeline_plan_of(job_, trainer_.model(), layout, BatchPlan::make(job_, layout, rows)).lists;
  const auto rank = static_cast<std::size_t>(trainer_.mesh().coord(mesh::Axis::pp));
  return static_cast<double>(rows) * schedule::peak_activations(lists[rank]);
}

/// What the steps so far took beyond the model grows with the sequences that are kept at once, and
/// must fit into what is free.
bool MicrobatchTuner::next_fits() const {
  const at::Device device = trainer_.stages().options().sharding.device;
  const auto used = static_cast<double>(peak_bytes(device) - bytes_before_);
  const double more = used * (kept_rows(trial_.next_rows()) / kept_rows(trial_.rows()) - 1);
  return more < 0.9 * static_cast<double>(free_bytes(device, sharers_));
}

std::string MicrobatchTuner::after_step(double seconds) {
  if (done()) return {};
  comm::Communicator& control = trainer_.mesh().control();
  const bool fits = trial_.next_rows() == 0 || next_fits();
  const bool all_fit = comm::all_reduce_scalar(control, std::int64_t{fits}, comm::Op::min) == 1;
  trial_.took(comm::all_reduce_scalar(control, seconds, comm::Op::max), all_fit);
  return done() ? fmt::format("microbatches of {} sequences were fastest", trial_.rows()) : "";
}

}  // namespace tessera::train
