// SPDX-License-Identifier: Apache-2.0
// copy_ as LibTorch's CUDA kernel does it (ATen/native/cuda/Copy.cu): bytes that lie alike go by
// cudaMemcpyAsync, pinned memory without the host's waiting; all else goes through a tensor of the
// same layout, or is converted on the device.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "host_twins.hpp"
#include "operator_task.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

bool same_type(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() &&
         a.is_neg() == b.is_neg();
}

/// Elements in the same order, without gaps.
bool lie_alike(const Tensor& a, const Tensor& b) {
  return a.strides() == b.strides() ? a.is_non_overlapping_and_dense()
                                    : a.is_contiguous() && b.is_contiguous();
}

void copy_bytes(const Tensor& to, const Tensor& from, cudaMemcpyKind kind, bool non_blocking) {
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  void* const target = to.mutable_data_ptr();
  const void* const source = from.const_data_ptr();
  if (kind != cudaMemcpyDeviceToDevice && !non_blocking)
    return c10::cuda::memcpy_and_sync(target, source, static_cast<std::int64_t>(from.nbytes()),
                                      kind, stream);
  C10_CUDA_CHECK(cudaMemcpyAsync(target, source, from.nbytes(), kind, stream));
  if (kind == cudaMemcpyDeviceToDevice) return;
  // pinned memory is not given out again before the copy is done
  const Tensor& host = to.is_cuda() ? from : to;
  at::getHostAllocator(at::kCUDA)->record_event(const_cast<void*>(host.const_data_ptr()),
                                                host.storage().data_ptr().get_context(),
                                                stream.unwrap());
}

void copy_on_device(const Tensor& to, const Tensor& from) {
  TORCH_CHECK(to.device() == from.device(),
              "the simulated GPU does not copy from one device to another");
  if (same_type(to, from) && lie_alike(to, from))
    return copy_bytes(to, from, cudaMemcpyDeviceToDevice, true);
  count_work(WorkKind::launch, "aten::copy_");
  HostTwins twins;
  OperatorTask task{"aten::copy_", to.device().index(), {}, {}};
  add_accesses(task.accesses, from, false);
  add_accesses(task.accesses, to, true);
  task.work = [target = twins.of(to), source = twins.of(from)] { target.copy_(source); };
  operators_wait() ? queue_operator(task) : run_operator(task);
}

void copy_to_device(const Tensor& to, const Tensor& from, bool non_blocking) {
  const Tensor target = to.is_contiguous() ? to : at::empty_like(to, at::MemoryFormat::Contiguous);
  const Tensor source = from.to(to.scalar_type()).resolve_conj().resolve_neg().contiguous();
  copy_bytes(target, source, cudaMemcpyHostToDevice, non_blocking);
  if (!target.is_same(to)) to.copy_(target, non_blocking);
}

void copy_to_host(const Tensor& to, const Tensor& from, bool non_blocking) {
  const bool direct = to.is_contiguous() && same_type(to, from);
  const Tensor target =
      direct ? to : at::empty_like(to, from.scalar_type(), at::MemoryFormat::Contiguous);
  copy_bytes(target, from.resolve_conj().resolve_neg().contiguous(), cudaMemcpyDeviceToHost,
             non_blocking);
  if (!direct) to.copy_(target, non_blocking);
}

bool is_same_data(const Tensor& a, const Tensor& b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && same_type(a, b);
}

Tensor& copy(Tensor& self, const Tensor& source, bool non_blocking) {
  if (self.is_same(source)) return self;
  const Tensor from = source.expand_as(self);
  if (self.numel() == 0 || is_same_data(self, from)) return self;
  const c10::cuda::CUDAGuard guard(self.is_cuda() ? self.device() : from.device());
  if (self.is_cuda() && from.is_cuda())
    copy_on_device(self, from);
  else if (self.is_cuda())
    copy_to_device(self, from, non_blocking);
  else
    copy_to_host(self, from, non_blocking);
  return self;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return to.copy_(from);
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("copy_", &copy);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
}

}  // namespace
}  // namespace tessera::sim
