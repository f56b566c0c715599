// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/shard_group.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/torch_internal.hpp"
#include "tessera/parallel/registered_buffer.hpp"
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
  param.in_bytes = placed.in_bytes;
  param.flat_begin = chunk_elements_;
  param.gather_begin = chunk_bytes_;
  const std::int64_t elements = plan::flat_elements(param.place);
  chunk_elements_ += elements;
  chunk_bytes_ += elements * element_bytes(param);
  params_.push_back(std::move(param));
}

/// Of a gathered parameter.
std::int64_t ShardGroup::element_bytes(const ShardedParam& param) const {
  return param.in_bytes ? 1
                        : static_cast<std::int64_t>(at::elementSize(options_.precision.compute));
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
  weights_memory_ = aliased() ? flat_master_.view(at::kByte)
                              : at::empty({fsdp_.size() * chunk_bytes_},
                                          at::TensorOptions(at::kByte).device(options_.device));
  for (ShardedParam& param : params_) {
    param.master = param.in(flat_master_);
    show_weights(param);
  }
  if (aliased()) return;
  const at::ScalarType words = is_dense(*this) ? options_.precision.compute : at::kByte;
  for (const ShardedParam& param : params_)
    parts_.push_back(
        param.storage.view({fsdp_.size(), param.chunk_elements()}).view(at::kByte).view(words));
  const at::Tensor weights = weights_memory_.view(options_.precision.compute);
  // after all views: those of freed memory cannot be made
  kernels::release_storage(weights_memory_);
  if (may_keep_copy()) copy_ = KeptCopy(weights, flat_master_);
}

/// Frozen weights have no optimizer, those of another group's masters have it there, and it does
/// not write bytes.
bool ShardGroup::may_keep_copy() const {
  const Precision& types = options_.precision;
  return fsdp_.size() == 1 && types.master == at::kFloat && types.compute == at::kBFloat16 &&
         options_.trainable && !options_.offload && !options_.home && !options_.scales;
}

void ShardGroup::show_weights(ShardedParam& param) {
  const std::int64_t ranks = fsdp_.size();
  const at::ScalarType type = param.in_bytes ? at::kByte : options_.precision.compute;
  param.storage = weights_memory_
                      .narrow(0, ranks * param.gather_begin,
                              ranks * param.chunk_elements() * element_bytes(param))
                      .view(type)
                      .view(with_rows(param.place.shared_shape(), ranks * param.place.chunk_rows));
  const Tensor weight =
      param.storage.narrow(0, 0, param.place.shared_shape()[0]).view(param.place.local_shape);
  // variable_data(): the leaf has a version counter of its own, so that gathering again is not an
  // in-place change to autograd.
  param.leaf = param.in_bytes ? leaf_without_memory(param, weight) : weight.variable_data();
  param.leaf.set_requires_grad(options_.trainable);
}

/// The gradient of `weight`, which is in bytes, has the leaf's type.
Tensor ShardGroup::leaf_without_memory(ShardedParam& param, const Tensor& weight) const {
  param.bytes = options_.scales->add(param.master);
  param.bytes.bytes = weight;
  const Tensor leaf = at::empty(weight.sizes(), weight.options().dtype(options_.precision.compute));
  kernels::release_storage(leaf);
  return leaf;
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
  if (options_.scales) options_.scales->refresh();
  weights_ = Weights::gathering;
  if (aliased()) return;
  at::NoGradGuard no_grad;
  if (options_.copies && !kept_.part.defined()) {
    upload();
    return;
  }
  const bool kept = kept_.part.defined();
  comm::Communicator& from = kept ? *kept_.inner : fsdp_;
  register_gather(from);
  if (!gather_.in.defined())
    gather_.in = kept ? kept_.part : packed(flat_master_);
  else if (kept)
    gather_.in.copy_(kept_.part.view({-1}));
  else
    pack(flat_master_, gather_.in);
  start_gather(from);
}

/// The next gather is in place in registered memory, where there is some.
void ShardGroup::register_gather(comm::Communicator& from) {
  if (!options_.register_buffers || fsdp_.size() == 1) return;
  const Tensor memory = registered_buffer(from, gathered_bytes(), options_.device);
  if (!memory.defined()) return;
  gather_.out = memory.view({fsdp_.size(), chunk_bytes_});
  gather_.in = memory.view({from.size(), -1})[from.rank()];
}

/// What this rank gives to a gather: the memory of its masters where that is the same.
Tensor ShardGroup::packed(const Tensor& masters) const {
  if (!options_.scales)
    return masters.to(options_.device, options_.precision.compute).view(at::kByte);
  const Tensor bytes = at::empty({chunk_bytes_}, weights_memory_.options());
  pack(masters, bytes);
  return bytes;
}

void ShardGroup::pack(const Tensor& masters, const Tensor& into) const {
  const at::ScalarType compute = options_.precision.compute;
  if (!options_.scales) {
    into.view(compute).copy_(masters);
    return;
  }
  std::int64_t own = 0;
  for (const ShardedParam& param : params_) own += param.master.numel();
  if (own < chunk_elements_) into.zero_();
  for (const ShardedParam& param : params_) {
    const Tensor rows = param.in(masters);
    if (rows.numel() == 0) continue;
    const Tensor part = into.narrow(0, param.gather_begin, rows.numel() * element_bytes(param));
    if (param.in_bytes)
      kernels::write_bytes(part.view(rows.sizes()), rows, param.bytes.scales, DType::f8e4m3, {});
    else
      part.view(compute).copy_(rows.flatten());
  }
}

void ShardGroup::start_gather(comm::Communicator& from) {
  if (fsdp_.size() == 1) return;
  if (!gather_.out.defined())
    gather_.out = at::empty({fsdp_.size(), chunk_bytes_}, gather_.in.options());
  const at::ScalarType words = options_.precision.compute;
  gather_.request =
      from.all_gather(buffer_of(gather_.in.view(words)), buffer_of(gather_.out.view(words)));
  ++gather_count_.gathers;
  gather_count_.bytes += gather_.out.numel() - gather_.in.numel();
}

void ShardGroup::finish_unshard() {
  start_unshard();
  if (weights_ != Weights::gathering) return;
  gather_.request.wait();
  upload_.done.hold_current();
  if (!aliased()) copy_out();
  weights_ = Weights::gathered;
}

/// What a gather would read is all there is.
void ShardGroup::take_over() {
  const bool masters = gather_.in.is_alias_of(flat_master_);
  kernels::move_storage(masters ? gather_.in.clone() : gather_.in, weights_memory_);
  gather_.in = upload_.staged = Tensor();
}

void ShardGroup::copy_out() {
  at::NoGradGuard no_grad;
  if (fsdp_.size() == 1) return take_over();
  kernels::restore_storage(weights_memory_, static_cast<std::size_t>(gathered_bytes()));
  const Tensor gathered = gather_.out.view(parts_.front().scalar_type());
  if (is_dense(*this))
    kernels::copy_columns(gathered, parts_);
  else
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].copy_(part_of(gathered, i));
  gather_.in = gather_.out = upload_.staged = Tensor();
}

/// Columns of a gather, or of a part of it, that the i-th parameter has.
Tensor ShardGroup::part_of(const Tensor& gathered, std::size_t i) const {
  return gathered.narrow(1, params_[i].gather_begin / gathered.element_size(), parts_[i].size(1));
}

std::int64_t ShardGroup::gathered_bytes() const { return fsdp_.size() * chunk_bytes_; }

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
    kept_.part = at::empty({ranks, chunk_bytes_}, weights_memory_.options());
    const Tensor words = kept_.part.view(parts_.front().scalar_type());
    for (std::size_t i = 0; i < parts_.size(); ++i)
      part_of(words, i).copy_(parts_[i].narrow(0, begin, ranks));
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
  mark_stale();
  if (weights_ != Weights::freed) reshard();
  kept_.part = Tensor();
}

void ShardGroup::abandon_step() {
  gather_.request.abandon();
  gather_.in = gather_.out = upload_.staged = kept_.part = Tensor();
  for (ShardedParam& param : params_) param.leaf.mutable_grad() = Tensor();
  if (weights_ != Weights::freed && !aliased()) kernels::release_storage(weights_memory_);
  weights_ = Weights::freed;
  mark_stale();
}

void ShardGroup::mark_stale() {
  copy_.mark_stale();
  if (options_.scales) options_.scales->mark_stale();
}

}  // namespace tessera::parallel
