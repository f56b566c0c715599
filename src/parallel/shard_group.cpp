#include "tessera/parallel/shard_group.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/kernels/torch_internal.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;

constexpr std::int64_t kAlignment = 32;  // elements: 64 bytes in bfloat16, and whole vectors in float32

std::int64_t aligned(std::int64_t count) { return (count + kAlignment - 1) / kAlignment * kAlignment; }

Shape with_rows(const Shape& shape, std::int64_t rows) {
  Shape changed = shape;
  changed[0] = rows;
  return changed;
}

}  // namespace

TensorSlice ShardedParam::slice(const std::string& prefix) const {
  return place.slice(*spec, prefix, dtype_of(master.scalar_type()));
}

ShardGroup::ShardGroup(std::string name, std::vector<PlacedParam> params, const ShardAxes& axes,
                       const GroupOptions& options)
    : name_(std::move(name)), options_(options), fsdp_(*axes.fsdp), replicate_(*axes.replicate) {
  for (PlacedParam& placed : params) add(std::move(placed));
  allocate();
}

void ShardGroup::add(PlacedParam placed) {
  TESSERA_EXPECT(placed.place.shards == fsdp_.size(), "{} is cut for {} ranks, and {} share it", placed.spec->fqn,
                 placed.place.shards, fsdp_.size());
  ShardedParam param;
  param.spec = placed.spec;
  param.place = std::move(placed.place);
  param.flat_begin = chunk_elements_;
  chunk_elements_ += aligned(param.chunk_elements());
  params_.push_back(std::move(param));
}

void ShardGroup::allocate() {
  const auto options =
      at::TensorOptions(options_.precision.master).device(options_.offload ? at::kCPU : options_.device);
  const bool pinned = options_.offload && !options_.device.is_cpu();
  flat_master_ =
      options_.home ? options_.home->flat_master_ : at::zeros({chunk_elements_}, options.pinned_memory(pinned));
  if (options_.trainable) flat_gradient_ = at::zeros({chunk_elements_}, options.pinned_memory(pinned));
  for (ShardedParam& param : params_) {
    const auto mine = [&](const Tensor& flat) {
      return flat.narrow(0, param.flat_begin, param.place.rows.size * param.place.row_elements())
          .view(with_rows(param.place.shared_shape(), param.place.rows.size));
    };
    param.master = mine(flat_master_);
    if (options_.trainable) param.gradient = mine(flat_gradient_);
    allocate_weights(param);
  }
}

void ShardGroup::allocate_weights(ShardedParam& param) {
  param.storage = aliased() ? param.master
                            : at::empty(with_rows(param.place.shared_shape(), fsdp_.size() * param.place.chunk_rows),
                                        at::TensorOptions(options_.precision.compute).device(options_.device));
  // variable_data(): the leaf has a version counter of its own, so that gathering again is not an in-place change to
  // autograd.
  param.leaf = param.storage.narrow(0, 0, param.place.shared_shape()[0])
                   .view(param.place.local_shape)
                   .variable_data()
                   .set_requires_grad(options_.trainable);
  if (!aliased()) kernels::release_storage(param.storage);  // after the leaf: views of freed memory cannot be made
}

int ShardGroup::find(const model::ParamSpec* spec) const {
  for (std::size_t i = 0; i < params_.size(); ++i)
    if (params_[i].spec == spec) return static_cast<int>(i);
  return -1;
}

void ShardGroup::start_unshard() {
  if (gathered_ || gathering_) return;
  gathering_ = true;
  if (aliased()) return;
  at::NoGradGuard no_grad;
  if (options_.copies && !kept_.defined()) {
    upload();
    return;
  }
  gather_in_ = kept_.defined() ? kept_ : flat_master_.to(options_.device, options_.precision.compute);
  start_gather(kept_.defined() ? *inner_ : fsdp_);
}

void ShardGroup::start_gather(comm::Communicator& from) {
  if (fsdp_.size() == 1) return;
  if (!gather_out_.defined()) gather_out_ = at::empty({fsdp_.size(), chunk_elements_}, gather_in_.options());
  gather_ = from.all_gather(buffer_of(gather_in_), buffer_of(gather_out_));
  ++gather_count_.gathers;
  gather_count_.bytes +=
      (gather_out_.numel() - gather_in_.numel()) * static_cast<std::int64_t>(gather_in_.element_size());
}

void ShardGroup::finish_unshard() {
  start_unshard();
  if (!gathering_) return;
  gather_.wait();
  uploaded_.hold_current();
  if (!aliased()) copy_out();
  gathering_ = false;
  gathered_ = true;
}

void ShardGroup::copy_out() {
  at::NoGradGuard no_grad;
  const Tensor all = fsdp_.size() == 1 ? gather_in_.unsqueeze(0) : gather_out_;
  for (ShardedParam& param : params_) {
    const std::int64_t chunk = param.chunk_elements();
    kernels::restore_storage(param.storage,
                             static_cast<std::size_t>(fsdp_.size() * chunk) * param.storage.element_size());
    param.storage.view({fsdp_.size(), chunk}).copy_(all.narrow(1, param.flat_begin, chunk));
  }
  gather_in_ = gather_out_ = staged_ = Tensor();
}

std::int64_t ShardGroup::gathered_bytes() const {
  return fsdp_.size() * chunk_elements_ * static_cast<std::int64_t>(at::elementSize(options_.precision.compute));
}

void ShardGroup::reshard() {
  finish_unshard();
  gathered_ = false;
  if (aliased()) return;
  for (ShardedParam& param : params_) kernels::release_storage(param.storage);
}

void ShardGroup::reshard_within(comm::Communicator& inner) {
  finish_unshard();
  if (!kept_.defined() && !aliased()) {
    at::NoGradGuard no_grad;
    inner_ = &inner;
    const std::int64_t ranks = fsdp_.size() / inner.size(), begin = inner.rank() * ranks;
    kept_ = at::empty({ranks, chunk_elements_}, at::TensorOptions(options_.precision.compute).device(options_.device));
    for (const ShardedParam& param : params_) {
      const std::int64_t chunk = param.chunk_elements();
      kept_.narrow(1, param.flat_begin, chunk).copy_(param.storage.view({fsdp_.size(), chunk}).narrow(0, begin, ranks));
    }
  }
  reshard();
}

/// This parameter's part of a flat gradient [fsdp, chunk_elements], as [fsdp, chunk].
Tensor ShardGroup::accumulator(const ShardedParam& param, const Tensor& flat) const {
  return flat.narrow(1, param.flat_begin, param.chunk_elements());
}

void ShardGroup::add_leaf_gradient(ShardedParam& param, const Tensor& flat, bool first) {
  const Tensor into = accumulator(param, flat);
  const Tensor gradient = param.leaf.grad();
  if (!gradient.defined()) {
    if (first) into.zero_();
    return;
  }
  const auto put = [first](Tensor to, const Tensor& from) { first ? to.copy_(from) : to.add_(from); };
  const Tensor values = gradient.contiguous().view({-1});
  const std::int64_t chunk = into.size(1), whole = chunk > 0 ? values.numel() / chunk : 0;
  put(into.narrow(0, 0, whole), values.narrow(0, 0, whole * chunk).view({whole, chunk}));
  if (whole < into.size(0)) {  // the last ranks' chunks are short or empty
    const std::int64_t rest = values.numel() - whole * chunk;
    if (first) into.narrow(0, whole, into.size(0) - whole).zero_();
    if (rest > 0) put(into[whole].narrow(0, 0, rest), values.narrow(0, whole * chunk, rest));
  }
  param.leaf.mutable_grad() = Tensor();
}

void ShardGroup::accumulate(std::int64_t microbatch, bool tree) {
  if (!options_.trainable) return;
  at::NoGradGuard no_grad;
  if (adds_in_place() && !tree) {
    const Tensor flat = flat_gradient_.view({1, chunk_elements_});
    for (ShardedParam& param : params_) add_leaf_gradient(param, flat, !reduced_);
    reduced_ = true;
    return;
  }
  const bool same = !partials_.empty() && partials_.back().level == 0 && partials_.back().index == microbatch;
  const bool first = partials_.empty() || (tree && !same);
  if (first) {
    merge();
    const auto options = at::TensorOptions(options_.precision.master).device(options_.device);
    partials_.push_back({0, microbatch, at::empty({fsdp_.size(), chunk_elements_}, options)});
  }
  for (ShardedParam& param : params_) add_leaf_gradient(param, partials_.back().flat, first);
}

/// Adds neighbours of equal size; if microbatches come in order, what is left is one partial sum for each set bit of
/// their number.
void ShardGroup::merge() {
  while (merge_last()) continue;
}

/// The newest partial sum with its neighbour in the tree, if that is there.
bool ShardGroup::merge_last() {
  if (partials_.empty()) return false;
  const Partial newest = partials_.back();
  const auto neighbour = std::ranges::find_if(partials_, [&](const Partial& other) {
    return other.level == newest.level && other.index == (newest.index ^ 1);
  });
  if (neighbour == partials_.end()) return false;
  neighbour->flat.add_(newest.flat);  // in either order: addition commutes
  const Partial sum{newest.level + 1, newest.index / 2, neighbour->flat};
  partials_.pop_back();
  partials_.erase(neighbour);
  partials_.push_back(sum);
  return true;
}

void ShardGroup::start_reduction() {
  if (!options_.trainable || (partials_.empty() && (reducing_ || reduced_))) return;
  wait_reduction();
  at::NoGradGuard no_grad;
  reducing_ = true;
  const auto options = at::TensorOptions(options_.precision.master).device(options_.device);
  merge();
  if (partials_.empty()) partials_.push_back({0, 0, at::zeros({fsdp_.size(), chunk_elements_}, options)});
  std::ranges::sort(partials_, {}, &Partial::first);
  for (; partials_.size() > 1; partials_.pop_back()) partials_[partials_.size() - 2].flat.add_(partials_.back().flat);
  reduce_in_ = partials_.back().flat.to(options_.precision.reduce);
  partials_.clear();
  const bool in_place = !reduced_ && !options_.offload && options_.precision.reduce == options_.precision.master;
  reduce_out_ = in_place ? flat_gradient_ : at::empty({chunk_elements_}, reduce_in_.options());
  reduction_ = fsdp_.reduce_scatter(buffer_of(reduce_in_), buffer_of(reduce_out_));
}

void ShardGroup::wait_reduction() {
  if (!reducing_) return;
  at::NoGradGuard no_grad;
  reduction_.wait();
  reduce_in_ = Tensor();
  if (options_.copies)
    land();
  else if (reduced_)
    flat_gradient_.add_(reduce_out_);
  else if (!reduce_out_.is_same(flat_gradient_))
    flat_gradient_.copy_(reduce_out_);
  reduce_out_ = Tensor();
  reducing_ = false;
  reduced_ = true;
}

void ShardGroup::finish_reduction() {
  if (!options_.trainable) return;
  wait_reduction();
  settle();
  sum_gradient(replicate_);
}

void ShardGroup::sum_gradient(comm::Communicator& over) {
  if (over.size() == 1) return;
  at::NoGradGuard no_grad;
  const Tensor sum = flat_gradient_.to(options_.device, options_.precision.reduce);
  over.all_reduce(buffer_of(sum)).wait();
  if (!sum.is_same(flat_gradient_)) flat_gradient_.copy_(sum);
}

void ShardGroup::add_gradient(const ShardGroup& other) {
  at::NoGradGuard no_grad;
  flat_gradient_.add_(other.flat_gradient_);
}

std::vector<Tensor> ShardGroup::take_leaf_gradients() {
  std::vector<Tensor> gradients;
  for (ShardedParam& param : params_) gradients.push_back(std::exchange(param.leaf.mutable_grad(), Tensor()));
  return gradients;
}

void ShardGroup::put_leaf_gradients(const std::vector<Tensor>& gradients) {
  for (std::size_t i = 0; i < params_.size(); ++i) params_[i].leaf.mutable_grad() = gradients[i];
}

void ShardGroup::end_step() {
  if (gathered_ || gathering_) reshard();
  kept_ = Tensor();
  partials_.clear();
  reduced_ = false;
}

}  // namespace tessera::parallel
