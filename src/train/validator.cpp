// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/validator.hpp"

#include <algorithm>

#include "loss_sums.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

using mesh::Axis;

std::int64_t samples_of(const config::Validation& validation, const data::SampleSource& source,
                        const BatchPlan& plan) {
  const std::int64_t all = source.sample_limit().value();
  if (validation.samples) return std::min(all, *validation.samples);
  const std::int64_t batches = (all + plan.global_batch - 1) / plan.global_batch;
  return validation.steps == -1 || validation.steps >= batches
             ? all
             : validation.steps * plan.global_batch;
}

/// Every rank: all microbatches through its first stage, then through the next.
schedule::ActionLists forwards(const schedule::StageMap& map, int microbatches) {
  schedule::ActionLists lists(static_cast<std::size_t>(map.ranks()));
  for (int stage = 0; stage < map.stages(); ++stage)
    for (int m = 0; m < microbatches; ++m)
      lists[static_cast<std::size_t>(map.rank_of(stage))].push_back(
          {schedule::ActionKind::forward, stage, m});
  return with_transfers(lists, map);
}

}  // namespace

Validator::Validator(const config::JobConfig& job, const model::ModelSpec& model,
                     mesh::DeviceMesh& mesh, parallel::Stages& stages,
                     const data::SampleSource& source)
    : job_(job),
      model_(model),
      mesh_(mesh),
      stages_(stages),
      source_(source),
      plan_(BatchPlan::of_validation(job, mesh.layout())),
      samples_(samples_of(job.validation, source, plan_)),
      padded_(source, samples_, job.training.seq_len),
      lists_(forwards(stages.map(), plan_.microbatches)),
      executor_(stages, mesh.along(Axis::pp)) {}

ValidationResult Validator::run(std::int64_t step) {
  const double began = metrics::monotonic_seconds();
  const std::int64_t trained_batch = stages_.options().microbatch.batch;
  stages_.set_batch(plan_.microbatch_rows);
  ReadAhead ahead(padded_, reader_of(mesh_, stages_.map()), model_.dimensions.vocab,
                  ahead_of(job_.validation.dataloader));
  const schedule::ActionList& actions = lists_[static_cast<std::size_t>(mesh_.coord(Axis::pp))];
  // behind a batch's first sample
  const std::int64_t own = mesh_.layout().dp_rank(mesh_.rank()) * plan_.rows;
  LossSums sums(source_);
  for (std::int64_t first = 0; first < samples_; first += plan_.global_batch) {
    comm::Watchdog::heartbeat(step);
    const Rows rows = ahead.take(plan_, first, samples_);
    stages_.begin_step(plan_.microbatches);
    const Batch batch = batch_of(rows, plan_, stages_.options().sharding.device);
    const parallel::PassResult pass = executor_.evaluate(actions, batch.microbatches);
    if (mesh_.coord(Axis::tp) == 0) sums.add(rows, plan_, pass.token_losses, first + own, samples_);
  }
  stages_.end_step();
  stages_.set_batch(trained_batch);
  sums.reduce(mesh_.control());
  return {sums.loss(), sums.tokens(), samples_, metrics::monotonic_seconds() - began, sums.parts()};
}

}  // namespace tessera::train
