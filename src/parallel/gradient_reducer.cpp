// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/gradient_reducer.hpp"

#include <algorithm>
#include <bit>

#include "gradient_bucket.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using mesh::Axis;

namespace {

/// Units whose gradients may wait for one kind of sum, in memory as large as the whole gradient's.
constexpr std::size_t kWindow = 2;
/// A reduction that replicas wait for has the time of one unit's backward.
constexpr std::size_t kBeforeReplicas = 1;

}  // namespace

GradientReducer::GradientReducer(const model::ModelSpec& model, mesh::DeviceMesh& mesh,
                                 const ReducerOptions& options)
    : mesh_(mesh), options_(options) {
  make_neighbours(model);
  if (model.dimensions.tied && options.first_rank != options.last_rank) tie_ends();
}

GradientReducer::~GradientReducer() = default;

/// Communicators are made while all ranks construct the same: by any parameter of the model.
void GradientReducer::make_neighbours(const model::ModelSpec& model) {
  comm::Communicator& tp = mesh_.along(Axis::tp);
  for (const model::ParamSpec& param : model.params)
    if (param.max_pieces > 1 && param.max_pieces < tp.size())
      mesh_.neighbours(tp, tp.size() / param.max_pieces);
}

void GradientReducer::tie_ends() {
  const schedule::PipelineRank first = options_.first_rank, last = options_.last_rank;
  if (first.value() == 0 && last.value() == mesh_.along(Axis::pp).size() - 1) {
    ends_ = mesh_.embedding_group();
    return;
  }
  own_ends_ = mesh_.pipeline_pair(first.value(), last.value());
  ends_ = own_ends_.get();
}

void GradientReducer::add_unit(std::span<ShardGroup* const> groups) {
  for (ShardGroup* group : groups) {
    if (!group->options().trainable) continue;
    if (!beside_) beside_.emplace(group->options().device);
    GradientBucket*& bucket = bucket_of_[group];
    if (!bucket)
      bucket = buckets_
                   .emplace_back(std::make_unique<GradientBucket>(
                       *group, mesh_.along(Axis::dp_replicate), options_.tree))
                   .get();
    bucket->add_user();
  }
}

GradientBucket* GradientReducer::find(const ShardGroup* group) const {
  const auto found = bucket_of_.find(group);
  return found == bucket_of_.end() ? nullptr : found->second;
}

void GradientReducer::begin_step(int microbatches) {
  for (const auto& bucket : buckets_) bucket->begin_step(microbatches);
}

void GradientReducer::add(std::span<ShardGroup* const> unit, std::int64_t microbatch) {
  Unit& added = reducing_.emplace_back();
  for (const ShardGroup* group : unit) {
    GradientBucket* bucket = find(group);
    if (!bucket) continue;
    const bool whole = bucket->add(microbatch);
    if (bucket->complete() || (options_.each_microbatch && whole)) bucket->start_reduction();
    if (may_sum_replicas(*bucket) && bucket->reduces_on_streams()) bucket->start_replicas(*beside_);
    added.push_back(bucket);
  }
  const bool hurries = std::ranges::any_of(reducing_.front(), [](const GradientBucket* bucket) {
    return may_sum_replicas(*bucket) && bucket->replicas_wait();
  });
  if (reducing_.size() > (hurries ? kBeforeReplicas : kWindow)) end_oldest_reduction();
}

void GradientReducer::settle() {
  while (!reducing_.empty()) end_oldest_reduction();
}

void GradientReducer::end_oldest_reduction() {
  Unit oldest = std::move(reducing_.front());
  reducing_.pop_front();
  for (GradientBucket* bucket : oldest) {
    bucket->wait_reduction();
    if (may_sum_replicas(*bucket)) bucket->start_replicas();
  }
  replicating_.push_back(std::move(oldest));
  if (replicating_.size() <= kWindow) return;
  for (GradientBucket* bucket : replicating_.front()) bucket->wait_sum();
  replicating_.pop_front();
}

/// A gradient in host memory would hold backward until it is there.
bool GradientReducer::may_sum_replicas(const GradientBucket& bucket) {
  return bucket.complete() && !bucket.group().options().offload;
}

/// What backward had no time for, in its order: the sums of one unit over replicas run beside the
/// reductions of the next ones.
void GradientReducer::finish() {
  reducing_.clear();
  replicating_.clear();
  for (const auto& bucket : buckets_) bucket->start_reduction();
  std::deque<GradientBucket*> summing;
  for (std::size_t i = buckets_.size(); i-- > 0;) {
    buckets_[i]->wait_reduction();
    buckets_[i]->start_replicas();
    summing.push_back(buckets_[i].get());
    if (summing.size() <= kWindow) continue;
    summing.front()->finish();
    summing.pop_front();
  }
  for (GradientBucket* bucket : summing) bucket->finish();
  sum_copies();
  sum_tied();
}

/// Copies within tensor parallelism: norm weights saw their own rank's tokens only (with sequence
/// parallelism), key-value heads that several ranks hold their own rank's queries. One exchange for
/// all of a kind: these are many small tensors.
void GradientReducer::sum_copies() {
  std::map<int, std::vector<at::Tensor>> pieces;  // by the number of copies
  for (const auto& bucket : buckets_)
    for (const ShardedParam& param : bucket->group().params())
      if (param.place.reduces_over(plan::ReduceOver::tp_copies))
        pieces[param.place.tp_copies].push_back(param.gradient.view({-1}));
  for (auto& [copies, gradients] : pieces)
    sum_pieces(gradients, mesh_.neighbours(mesh_.along(Axis::tp), copies));
}

void GradientReducer::sum_pieces(std::vector<at::Tensor>& pieces, comm::Communicator& over) const {
  at::NoGradGuard no_grad;
  const at::Tensor all = at::cat(pieces).to(buckets_.front()->group().options().device);
  over.all_reduce(buffer_of(all)).wait();
  std::int64_t begin = 0;
  for (at::Tensor& piece : pieces) {
    piece.copy_(all.narrow(0, begin, piece.numel()));
    begin += piece.numel();
  }
}

/// The two stages of a tied weight are on this rank, or its neighbour in `ends_` has the other one.
void GradientReducer::sum_tied() {
  for (const auto& bucket : buckets_) {
    if (const ShardGroup* home = bucket->group().options().home) find(home)->add(*bucket);
    if (ends_ && bucket->reduces_over(plan::ReduceOver::tied)) bucket->sum_over(*ends_);
  }
}

void GradientReducer::end_step(StepEnd how) {
  reducing_.clear();
  replicating_.clear();
  for (const auto& bucket : buckets_) bucket->end_step(how);
}

std::int64_t GradientReducer::waiting_sums(int microbatches) const {
  if (microbatches == 1 || options_.each_microbatch) return 0;
  // A partial sum for each bit of the number of microbatches waits, and one is added to them.
  return options_.tree ? 1 + std::bit_width(static_cast<unsigned>(microbatches)) : 1;
}

std::int64_t GradientReducer::accumulator_bytes(const ShardGroup& group) {
  if (!group.options().trainable) return 0;
  return group.fsdp().size() * group.chunk_elements() *
         static_cast<std::int64_t>(at::elementSize(group.options().precision.gradient()));
}

std::int64_t GradientReducer::reduction_bytes(const ShardGroup& group) {
  const Precision& types = group.options().precision;
  if (!group.options().trainable) return 0;
  const std::int64_t chunks = types.reduce != types.gradient() ? group.fsdp().size() + 1 : 1;
  return chunks * group.chunk_elements() * static_cast<std::int64_t>(at::elementSize(types.reduce));
}

void GradientReducer::add_memory(MemoryKinds& kinds) const {
  for (const auto& bucket : buckets_) bucket->add_memory(kinds);
}

}  // namespace tessera::parallel
