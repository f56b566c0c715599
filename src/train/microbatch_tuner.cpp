// SPDX-License-Identifier: Apache-2.0
#include "microbatch_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/schedule/action.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {
namespace {

std::vector<std::int64_t> sizes_of(const std::vector<plan::MicrobatchPlan>& plans) {
  std::vector<std::int64_t> sizes;
  for (const plan::MicrobatchPlan& plan : plans) sizes.push_back(plan.batch.microbatch_rows);
  return sizes;
}

}  // namespace

MicrobatchTuner::MicrobatchTuner(Trainer& trainer, const std::vector<plan::MicrobatchPlan>& plans,
                                 int sharers)
    : trainer_(trainer),
      plans_(plans),
      sharers_(sharers),
      trial_(sizes_of(plans)),
      bytes_before_(peak_bytes(trainer.stages().options().sharding.device)) {}

const plan::MicrobatchPlan& MicrobatchTuner::of(std::int64_t rows) const {
  return *std::ranges::find(plans_, rows,
                            [](const plan::MicrobatchPlan& p) { return p.batch.microbatch_rows; });
}

void MicrobatchTuner::before_step() { trainer_.set_microbatches(of(trial_.rows())); }

double MicrobatchTuner::kept_rows(std::int64_t rows) const {
  const schedule::PipelineRank rank = parallel::pipeline_rank(trainer_.mesh());
  return static_cast<double>(rows) * schedule::peak_activations(of(rows).pipeline.lists[rank]);
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
