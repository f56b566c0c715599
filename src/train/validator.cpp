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

std::int64_t samples_of(const plan::ValidationPlan& validation, const data::SampleSource& source) {
  const std::int64_t all = source.sample_limit().value();
  if (validation.samples) return std::min(all, *validation.samples);
  const std::int64_t batches =
      (all + validation.batch.global_batch - 1) / validation.batch.global_batch;
  return validation.steps == -1 || validation.steps >= batches
             ? all
             : validation.steps * validation.batch.global_batch;
}

/// Every rank: all microbatches through its first stage, then through the next.
schedule::ActionLists forwards(const schedule::StageMap& map, int microbatches) {
  using schedule::MicrobatchIndex, schedule::StageIndex;
  schedule::ActionLists lists(map.ranks());
  for (const StageIndex stage : map.each_stage())
    for (const MicrobatchIndex m : IndexRange<MicrobatchIndex>(microbatches))
      lists[map.rank_of(stage)].push_back({schedule::ActionKind::forward, stage, m});
  return with_transfers(lists, map);
}

}  // namespace

Validator::Validator(const plan::DataPlan& data, const model::ModelSpec& model,
                     mesh::DeviceMesh& mesh, parallel::Stages& stages,
                     const data::SampleSource& source)
    : plan_(data.validation.value()),
      model_(model),
      mesh_(mesh),
      stages_(stages),
      source_(source),
      samples_(samples_of(plan_, source)),
      padded_(source, samples_, data.seq_len),
      lists_(forwards(stages.map(), plan_.batch.microbatches)),
      executor_(stages, mesh) {}

ValidationResult Validator::run(std::int64_t step) {
  const double began = metrics::monotonic_seconds();
  const std::int64_t trained_batch = stages_.options().microbatch.batch;
  const plan::BatchPlan& sizes = plan_.batch;
  stages_.set_batch(sizes.microbatch_rows);
  BatchSender batches(padded_, reader_of(mesh_, stages_.map()), model_.dimensions.vocab,
                      plan_.read_ahead, stages_.options().sharding.device);
  const schedule::ActionList& actions = lists_[parallel::pipeline_rank(mesh_)];
  // behind a batch's first sample
  const std::int64_t own = mesh_.layout().dp_rank(mesh_.rank()) * sizes.rows;
  LossSums sums(source_);
  for (std::int64_t first = 0; first < samples_; first += sizes.global_batch) {
    comm::Watchdog::heartbeat(step);
    const SentBatch sent = batches.take(sizes, first, samples_);
    stages_.begin_step(sizes.microbatches);
    const Batch batch = batch_of(sent, sizes);
    const parallel::PassResult pass = executor_.evaluate(actions, batch.microbatches);
    batches.send_next(sizes, first + sizes.global_batch, samples_);
    if (mesh_.coord(Axis::tp) == 0)
      sums.add(sent.rows, sizes, joined(pass.token_losses), first + own, samples_);
  }
  stages_.end_step();
  stages_.set_batch(trained_batch);
  sums.reduce(mesh_.control());
  return {sums.loss(), sums.tokens(), samples_, metrics::monotonic_seconds() - began, sums.parts()};
}

}  // namespace tessera::train
