// SPDX-License-Identifier: Apache-2.0
#include "gradient_bucket.hpp"

#include <algorithm>

#include "tessera/comm/device.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/parallel/registered_buffer.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/plan/stage_units.hpp"

namespace tessera::parallel {

using at::Tensor;

namespace {

/// For the gradients of whole parameters, as the fsdp ranks cut them, in the type of a reduction or
/// another one.
Tensor gradient_memory(const ShardGroup& group, at::ScalarType type) {
  const GroupOptions& options = group.options();
  const std::int64_t ranks = group.fsdp().size(), elements = group.chunk_elements();
  if (options.register_buffers && type == options.precision.reduce) {
    const auto bytes = ranks * elements * static_cast<std::int64_t>(at::elementSize(type));
    const Tensor registered = registered_buffer(group.fsdp(), bytes, options.device);
    if (registered.defined()) return registered.view(type).view({ranks, elements});
  }
  return at::empty({ranks, elements}, at::TensorOptions(type).device(options.device));
}

/// As a reduction exchanges them.
Tensor for_exchange(const ShardGroup& group, const Tensor& gradients) {
  const at::ScalarType type = group.options().precision.reduce;
  return gradients.scalar_type() == type ? gradients
                                         : gradient_memory(group, type).copy_(gradients);
}

/// Does a stream wait for its operations, and not the host? A rehearsed GPU has NCCL.
bool ends_on_streams(const comm::Communicator& fsdp, at::Device device) {
  return fsdp.size() == 1 || fsdp.backend() == "nccl" ||
         (fsdp.backend() == "recording" && !device.is_cpu());
}

}  // namespace

GradientBucket::GradientBucket(ShardGroup& group, comm::Communicator& replicate, bool tree)
    : group_(group),
      replicate_(replicate),
      tree_(tree),
      flat_(at::zeros({group.chunk_elements()},
                      group.master_options().dtype(group.options().precision.gradient()))),
      partials_(tree,
                [&group] { return gradient_memory(group, group.options().precision.gradient()); }) {
  for (ShardedParam& param : group_.params()) param.gradient = param.in(flat_);
}

bool GradientBucket::reduces_over(plan::ReduceOver what) const {
  return std::ranges::any_of(group_.params(), [what](const ShardedParam& param) {
    return param.place.reduces_over(what);
  });
}

bool GradientBucket::adds_in_place() const {
  const GroupOptions& options = group_.options();
  return plan::adds_in_place(group_.fsdp().size(),
                             options.precision.reduce == options.precision.gradient(),
                             options.offload, tree_);
}

void GradientBucket::add_leaf(ShardedParam& param, const Tensor& flat, bool first) {
  const Tensor into = flat.narrow(1, param.flat_begin, param.chunk_elements());
  const Tensor gradient = param.leaf.grad();
  if (!gradient.defined()) {
    if (first) into.zero_();
    return;
  }
  const auto put = [first](Tensor to, const Tensor& from) {
    first ? to.copy_(from) : to.add_(from);
  };
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

/// All in one call, where they fill `flat`.
bool GradientBucket::put_leaves(const Tensor& flat, bool first) {
  if (!is_dense(group_)) return false;
  std::vector<Tensor> gradients;
  for (const ShardedParam& param : group_.params()) {
    const Tensor gradient = param.leaf.grad();
    if (!gradient.defined() || (!first && !kernels::can_add_runs(flat, gradient))) return false;
    gradients.push_back(gradient.reshape(param.place.shared_shape()));
  }
  first ? kernels::copy_runs(flat, gradients) : kernels::add_runs(flat, gradients);
  for (ShardedParam& param : group_.params()) param.leaf.mutable_grad() = Tensor();
  return true;
}

bool GradientBucket::add(std::int64_t microbatch) {
  at::NoGradGuard no_grad;
  PartialSums::Place place{flat_.view({1, -1}), !reduced_};
  if (adds_in_place())
    reduced_ = true;
  else
    place = partials_.of(microbatch);
  if (!put_leaves(place.flat, place.first))
    for (ShardedParam& param : group_.params()) add_leaf(param, place.flat, place.first);
  --pending_;
  return pending_ % users_ == 0;
}

void GradientBucket::start_reduction() {
  if (partials_.empty() && (reduction_.under_way || reduced_)) return;
  wait_reduction();
  at::NoGradGuard no_grad;
  reduction_.under_way = true;
  const GroupOptions& options = group_.options();
  reduction_.in = for_exchange(group_, partials_.take());
  if (options.register_buffers)  // NCCL wants both buffers to be registered
    reduction_.out = reduction_.in[group_.fsdp().rank()];
  else if (!reduced_ && !options.offload &&
           options.precision.reduce == options.precision.gradient())
    reduction_.out = flat_;
  else
    reduction_.out = at::empty({group_.chunk_elements()}, reduction_.in.options());
  request_ = group_.fsdp().reduce_scatter(buffer_of(reduction_.in), buffer_of(reduction_.out));
}

bool GradientBucket::reduces_on_streams() const {
  return !reduction_.under_way || ends_on_streams(group_.fsdp(), group_.options().device);
}

void GradientBucket::wait_reduction() {
  if (!reduction_.under_way) return;
  if (reduction_.beside) {
    reduction_.beside->hold_current();
    reduction_.beside.reset();
    reduction_.in = Tensor();
  } else {
    request_.wait();
    reduction_.in = Tensor();
    land_reduced();
  }
  reduction_.out = Tensor();
  reduction_.under_way = false;
}

void GradientBucket::land_reduced() {
  at::NoGradGuard no_grad;
  if (kernels::SideStream* copies = group_.options().copies)
    landing_.send(std::exchange(reduction_.out, Tensor()), flat_, reduced_, *copies);
  else if (reduced_)
    flat_.add_(reduction_.out);
  else if (!reduction_.out.is_same(flat_))
    flat_.copy_(reduction_.out);
  reduced_ = true;
}

void GradientBucket::start_sum(comm::Communicator& over) {
  at::NoGradGuard no_grad;
  landing_.settle(flat_);
  const GroupOptions& options = group_.options();
  sum_ = flat_.to(options.device, options.precision.reduce);
  request_ = over.all_reduce(buffer_of(sum_));
}

void GradientBucket::wait_sum() {
  if (!sum_.defined()) return;
  at::NoGradGuard no_grad;
  request_.wait();
  if (!sum_.is_same(flat_)) flat_.copy_(sum_);
  sum_ = Tensor();
}

void GradientBucket::start_replicas() {
  if (std::exchange(replicas_summed_, true) || replicate_.size() == 1) return;
  start_sum(replicate_);
}

void GradientBucket::start_replicas(kernels::SideStream& beside) {
  if (!reduction_.under_way || replicate_.size() == 1) return start_replicas();
  reduction_.beside = beside.run([this] {
    const comm::WaitsBeside not_counted;
    request_.wait();
    land_reduced();
    start_replicas();
  });
}

void GradientBucket::finish() {
  wait_sum();
  landing_.settle(flat_);
}

void GradientBucket::sum_over(comm::Communicator& over) {
  start_sum(over);
  wait_sum();
}

void GradientBucket::add(const GradientBucket& other) {
  at::NoGradGuard no_grad;
  flat_.add_(other.flat_);
}

void GradientBucket::end_step(StepEnd how) {
  if (how == StepEnd::abandoned) {
    request_.abandon();
    reduction_ = {};
    sum_ = Tensor();
  }
  partials_.clear();
  reduced_ = replicas_summed_ = false;
}

void GradientBucket::add_memory(MemoryKinds& kinds) const {
  const at::Device device = group_.options().device;
  const auto apart = [&](const Tensor& tensor) {
    const bool counted =
        tensor.defined() && (tensor.is_alias_of(flat_) ||
                             (reduction_.in.defined() && tensor.is_alias_of(reduction_.in)));
    return counted ? 0 : bytes_on(device, tensor);
  };
  kinds.gradients += bytes_on(device, flat_);
  partials_.for_each([&](const Tensor& flat) { kinds.gradients += bytes_on(device, flat); });
  kinds.communication += bytes_on(device, reduction_.in) + landing_.bytes_on(device);
  kinds.communication += apart(reduction_.out) + apart(sum_);
}

}  // namespace tessera::parallel
