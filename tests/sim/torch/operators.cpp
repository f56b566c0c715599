// SPDX-License-Identifier: Apache-2.0
// Operators that cannot fall back: they make tensors, change where a tensor lies, or concern
// streams. Each does what LibTorch's CUDA kernel of that name does.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/cuda/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "fallback.hpp"

namespace at::native {

/// Of ATen/native/cuda/Resize.h; LibTorch has it in libtorch_cuda.so.
void resize_bytes_cuda(StorageImpl* storage, std::size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const c10::cuda::CUDAGuard guard(storage->device().index());
  DataPtr data =
      bytes == 0 ? DataPtr(nullptr, storage->device()) : storage->allocator()->allocate(bytes);
  const std::size_t kept = std::min(bytes, storage->nbytes());
  if (kept > 0)
    C10_CUDA_CHECK(cudaMemcpyAsync(data.get(), storage->data(), kept, cudaMemcpyDeviceToDevice,
                                   c10::cuda::getCurrentCUDAStream()));
  storage->set_data_ptr_noswap(std::move(data));
  storage->set_nbytes(bytes);
}

}  // namespace at::native

namespace tessera::sim {
namespace {

using at::IntArrayRef;
using at::Tensor;

struct NewTensor {
  NewTensor(std::optional<at::Layout> layout, std::optional<at::Device> device,
            std::optional<bool> pin_memory)
      : guard(at::device_or_default(device)) {
    TORCH_CHECK(at::layout_or_default(layout) == at::kStrided,
                "the simulated GPU has dense tensors only");
    TORCH_CHECK(!at::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
  }
  const c10::cuda::CUDAGuard guard;
  c10::Allocator* const allocator = c10::cuda::CUDACachingAllocator::get();
  const c10::DispatchKeySet keys{c10::DispatchKey::CUDA};
};

Tensor empty(IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
             std::optional<at::Device> device, std::optional<bool> pin_memory,
             std::optional<at::MemoryFormat> format) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const NewTensor made(layout, device, pin_memory);
  return at::detail::empty_generic(size, made.allocator, made.keys, at::dtype_or_default(type),
                                   format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<at::ScalarType> type,
                     std::optional<at::Layout> layout, std::optional<at::Device> device,
                     std::optional<bool> pin_memory) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const NewTensor made(layout, device, pin_memory);
  return at::detail::empty_strided_generic(size, stride, made.allocator, made.keys,
                                           at::dtype_or_default(type));
}

const Tensor& resize(const Tensor& self, IntArrayRef size, std::optional<at::MemoryFormat> format) {
  at::native::resize_impl_cuda_(self.unsafeGetTensorImpl(), size, {});
  if (format.has_value()) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage source, std::int64_t offset, IntArrayRef size,
                    IntArrayRef stride) {
  at::native::checkSetStorage(self, source, offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  const at::OptionalIntArrayRef strides =
      stride.data() != nullptr ? at::OptionalIntArrayRef(stride) : std::nullopt;
  at::native::resize_impl_cuda_(self.unsafeGetTensorImpl(), size, strides);
  return self;
}

Tensor& set_whole_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<std::int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  if (self.is_same(source)) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

at::Scalar local_scalar(const Tensor& self) {
  const Tensor value = at::empty({}, self.options().device(at::kCPU));
  const c10::cuda::CUDAGuard guard(self.device());
  c10::cuda::memcpy_and_sync(value.mutable_data_ptr(), self.const_data_ptr(),
                             static_cast<std::int64_t>(self.element_size()), cudaMemcpyDeviceToHost,
                             c10::cuda::getCurrentCUDAStream());
  return value.item();
}

void record_stream(Tensor& self, at::Stream stream) {
  c10::cuda::CUDACachingAllocator::recordStream(self.storage().data_ptr(),
                                                c10::cuda::CUDAStream(stream));
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("record_stream", &record_stream);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", static_cast<Tensor (*)(const Tensor&, IntArrayRef)>(&at::native::view));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("view_as_real", &at::native::view_as_real);
  // LibTorch would take these apart: norms into operators that round differently, the loss with a
  // warning, products of groups into one for each, with a question to the device, and copies of
  // many tensors into one for each.
  for (const char* name : {"native_layer_norm", "native_layer_norm_backward", "mse_loss",
                           "_grouped_mm", "_chunk_cat.out", "split_with_sizes_copy.out"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

}  // namespace
}  // namespace tessera::sim
