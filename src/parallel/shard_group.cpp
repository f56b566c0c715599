// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/shard_group.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/torch_internal.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/plan/stage_units.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;

Shape with_rows(const Shape& shape, std::int64_t rows) {
  Shape changed = shape;
  changed[0] = rows;
  return changed;
}

}  // namespace

TensorSlice ShardedParam::slice(const std::string& prefix) const {
  return place.slice(*spec, prefix, dtype_of(master.scalar_type()));
}

Tensor ShardedParam::in(const Tensor& flat) const {
  return flat.narrow(0, flat_begin, place.rows.size * place.row_elements())
      .view(with_rows(place.shared_shape(), place.rows.size));
}

ShardGroup::ShardGroup(std::string name, std::vector<PlacedParam> params, comm::Communicator& fsdp,
                       const GroupOptions& options)
    : name_(std::move(name)), options_(options), fsdp_(fsdp) {
  for (PlacedParam& placed : params) add(std::move(placed));
  allocate();
}

void ShardGroup::add(PlacedParam placed) {
  TESSERA_EXPECT(placed.place.shards == fsdp_.size(), "{} is cut for {} ranks, and {} share it",
                 placed.spec->fqn, placed.place.shards, fsdp_.size());
  ShardedParam param;
  param.spec = placed.spec;
  param.place = std::move(placed.place);
  param.flat_begin = chunk_elements_;
  chunk_elements_ += plan::flat_elements(param.place);
  params_.push_back(std::move(param));
}

at::TensorOptions ShardGroup::master_options() const {
  const bool pinned = options_.offload && !options_.device.is_cpu();
  return at::TensorOptions(options_.precision.master)
      .device(options_.offload ? at::kCPU : options_.device)
      .pinned_memory(pinned);
}

void ShardGroup::allocate() {
  flat_master_ =
      options_.home ? options_.home->flat_master_ : at::zeros({chunk_elements_}, master_options());
  weights_memory_ =
      aliased() ? flat_master_
                : at::empty({fsdp_.size() * chunk_elements_},
                            at::TensorOptions(options_.precision.compute).device(options_.device));
  for (ShardedParam& param : params_) {
    param.master = param.in(flat_master_);
    show_weights(param);
  }
  if (aliased()) return;
  // after the leaves: views of freed memory cannot be made
  kernels::release_storage(weights_memory_);
  if (may_keep_copy()) copy_ = KeptCopy(weights_memory_, flat_master_);
}

/// Frozen weights have no optimizer, and those of another group's masters have it there.
bool ShardGroup::may_keep_copy() const {
  const Precision& types = options_.precision;
  return fsdp_.size() == 1 && types.master == at::kFloat && types.compute == at::kBFloat16 &&
         options_.trainable && !options_.offload && !options_.home;
}

void ShardGroup::show_weights(ShardedParam& param) {
  const std::int64_t ranks = fsdp_.size();
  param.storage =
      weights_memory_.narrow(0, ranks * param.flat_begin, ranks * param.chunk_elements())
          .view(with_rows(param.place.shared_shape(), ranks * param.place.chunk_rows));
  // variable_data(): the leaf has a version counter of its own, so that gathering again is not an
  // in-place change to autograd.
  param.leaf = param.storage.narrow(0, 0, param.place.shared_shape()[0])
                   .view(param.place.local_shape)
                   .variable_data()
                   .set_requires_grad(options_.trainable);
}

int find(const std::vector<ShardedParam>& params, const model::ParamSpec* spec) {
  const auto found = std::ranges::find(params, spec, &ShardedParam::spec);
  return found == params.end() ? -1 : static_cast<int>(found - params.begin());
}

bool is_dense(const ShardGroup& group) {
  std::int64_t elements = 0;
  for (const ShardedParam& param : group.params()) elements += param.chunk_elements();
  return elements == group.chunk_elements();
}

void ShardGroup::start_unshard() {
  copy_.refresh();
  if (weights_ != Weights::freed || copy_.is_kept()) return;
  weights_ = Weights::gathering;
  if (aliased()) return;
  at::NoGradGuard no_grad;
  if (options_.copies && !kept_.part.defined()) {
    upload();
    return;
  }
  gather_in_ = kept_.part.defined() ? kept_.part
                                    : flat_master_.to(options_.device, options_.precision.compute);
  start_gather(kept_.part.defined() ? *kept_.inner : fsdp_);
}

void ShardGroup::start_gather(comm::Communicator& from) {
  if (fsdp_.size() == 1) return;
  if (!gather_out_.defined())
    gather_out_ = at::empty({fsdp_.size(), chunk_elements_}, gather_in_.options());
  gather_ = from.all_gather(buffer_of(gather_in_), buffer_of(gather_out_));
  ++gather_count_.gathers;
  gather_count_.bytes += (gather_out_.numel() - gather_in_.numel()) *
                         static_cast<std::int64_t>(gather_in_.element_size());
}

void ShardGroup::finish_unshard() {
  start_unshard();
  if (weights_ != Weights::gathering) return;
  gather_.wait();
  upload_.done.hold_current();
  if (!aliased()) copy_out();
  weights_ = Weights::gathered;
}

/// What a gather would read is all there is.
void ShardGroup::take_over() {
  const bool masters = gather_in_.is_alias_of(flat_master_);
  kernels::move_storage(masters ? gather_in_.clone() : gather_in_, weights_memory_);
  gather_in_ = upload_.staged = Tensor();
}

void ShardGroup::copy_out() {
  at::NoGradGuard no_grad;
  if (fsdp_.size() == 1) return take_over();
  kernels::restore_storage(weights_memory_, static_cast<std::size_t>(gathered_bytes()));
  std::vector<Tensor> parts;
  for (const ShardedParam& param : params_)
    parts.push_back(param.storage.view({fsdp_.size(), param.chunk_elements()}));
  if (is_dense(*this))
    kernels::copy_columns(gather_out_, parts);
  else
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i].copy_(gather_out_.narrow(1, params_[i].flat_begin, parts[i].size(1)));
  gather_in_ = gather_out_ = upload_.staged = Tensor();
}

std::int64_t ShardGroup::gathered_bytes() const {
  return fsdp_.size() * chunk_elements_ *
         static_cast<std::int64_t>(at::elementSize(options_.precision.compute));
}

void ShardGroup::reshard() {
  if (copy_.is_kept()) return copy_.free();
  finish_unshard();
  weights_ = Weights::freed;
  if (aliased()) return;
  kernels::release_storage(weights_memory_);
}

void ShardGroup::reshard_within(comm::Communicator& inner) {
  finish_unshard();
  if (!kept_.part.defined() && !aliased()) {
    at::NoGradGuard no_grad;
    kept_.inner = &inner;
    const std::int64_t ranks = fsdp_.size() / inner.size(), begin = inner.rank() * ranks;
    kept_.part = at::empty({ranks, chunk_elements_},
                           at::TensorOptions(options_.precision.compute).device(options_.device));
    for (const ShardedParam& param : params_) {
      const std::int64_t chunk = param.chunk_elements();
      kept_.part.narrow(1, param.flat_begin, chunk)
          .copy_(param.storage.view({fsdp_.size(), chunk}).narrow(0, begin, ranks));
    }
  }
  reshard();
}

std::vector<Tensor> ShardGroup::take_leaf_gradients() {
  std::vector<Tensor> gradients;
  for (ShardedParam& param : params_)
    gradients.push_back(std::exchange(param.leaf.mutable_grad(), Tensor()));
  return gradients;
}

void ShardGroup::put_leaf_gradients(const std::vector<Tensor>& gradients) {
  for (std::size_t i = 0; i < params_.size(); ++i) params_[i].leaf.mutable_grad() = gradients[i];
}

void ShardGroup::end_step(StepEnd how) {
  if (how == StepEnd::abandoned) return abandon_step();
  copy_.mark_stale();
  if (weights_ != Weights::freed) reshard();
  kept_.part = Tensor();
}

void ShardGroup::abandon_step() {
  gather_.abandon();
  gather_in_ = gather_out_ = upload_.staged = kept_.part = Tensor();
  for (ShardedParam& param : params_) param.leaf.mutable_grad() = Tensor();
  if (weights_ != Weights::freed && !aliased()) kernels::release_storage(weights_memory_);
  weights_ = Weights::freed;
  copy_.mark_stale();
}

}  // namespace tessera::parallel
