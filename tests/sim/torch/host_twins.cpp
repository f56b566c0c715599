// SPDX-License-Identifier: Apache-2.0
#include "host_twins.hpp"

#include <ATen/ops/as_strided_native.h>

#include "sim/kernels/strided_bytes.hpp"

namespace tessera::sim {

c10::Storage HostTwins::storage_twin(const at::Tensor& tensor) {
  for (const auto& [owner, twin] : storages_)
    if (owner.is_alias_of(tensor)) return twin;
  const c10::Storage& storage = tensor.storage();
  TORCH_CHECK(tensor.numel() == 0 || storage.data() != nullptr,
              "the memory of this device tensor was given back");
  storages_.emplace_back(
      tensor,
      c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(),
                   at::DataPtr(const_cast<void*>(storage.data()), at::kCPU), nullptr, false));
  return storages_.back().second;
}

at::Tensor HostTwins::of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  for (const auto& [owner, twin] : tensors_)
    if (owner.is_same(tensor)) return twin;
  at::Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
      storage_twin(tensor), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  auto* const impl = twin.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  twin._set_conj(tensor.is_conj());
  twin._set_neg(tensor.is_neg());
  pair(tensor, twin);
  return twin;
}

at::Tensor HostTwins::device_tensor(const at::Tensor& twin) const {
  for (const auto& [owner, known] : tensors_)
    if (known.is_same(twin)) return owner;
  for (const auto& [owner, storage] : storages_)
    if (twin.has_storage() && storage.is_alias_of(twin.storage()) && owner.dtype() == twin.dtype())
      return at::native::as_strided_tensorimpl(owner, twin.sizes(), twin.strides(),
                                               twin.storage_offset());
  return {};
}

void add_accesses(std::vector<Access>& accesses, const at::Tensor& tensor, bool writes) {
  if (!tensor.defined() || !tensor.is_cuda() || tensor.numel() == 0) return;
  const auto size = static_cast<std::int64_t>(tensor.element_size());
  std::vector<Repeat> repeats;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim)
    repeats.push_back({tensor.size(dim), tensor.stride(dim) * size});
  add_accesses(accesses, tensor.const_data_ptr(), tensor.element_size(), std::move(repeats),
               writes);
}

}  // namespace tessera::sim
