// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/torch_internal.hpp"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>

#include "shape_memory.hpp"
#include "tessera/base/error.hpp"

namespace at::native {
// LibTorch exports it, and does not install the header.
void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& out, float beta, float alpha);
}  // namespace at::native

namespace tessera::kernels {
namespace {

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  TESSERA_EXPECT(tensor.defined() && tensor.has_storage(),
                 "a tensor without storage has no memory to give back");
  return *tensor.storage().unsafeGetStorageImpl();
}

c10::Allocator& allocator_of(const c10::StorageImpl& storage) {
  if (storage.allocator() != nullptr) return const_cast<c10::Allocator&>(*storage.allocator());
  return *c10::GetAllocator(storage.device_type());
}

}  // namespace

void release_storage(const at::Tensor& tensor) {
  c10::StorageImpl& storage = storage_of(tensor);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
  storage.set_nbytes(0);
}

void restore_storage(const at::Tensor& tensor, std::size_t storage_bytes) {
  c10::StorageImpl& storage = storage_of(tensor);
  TESSERA_EXPECT(storage.nbytes() == 0, "the storage still holds {} bytes", storage.nbytes());
  storage.set_data_ptr_noswap(allocator_of(storage).allocate(storage_bytes));
  storage.set_nbytes(storage_bytes);
}

void move_storage(const at::Tensor& from, const at::Tensor& to) {
  c10::StorageImpl &source = storage_of(from), &target = storage_of(to);
  TESSERA_EXPECT(target.nbytes() == 0, "the storage still holds {} bytes", target.nbytes());
  TESSERA_EXPECT(from.storage_offset() == 0 && to.storage_offset() == 0,
                 "memory of a part cannot be moved");
  const std::size_t bytes = source.nbytes();
  target.set_data_ptr_noswap(std::move(source._mutable_data_ptr_no_checks()));
  target.set_nbytes(bytes);
  release_storage(from);
}

std::int64_t allocated_bytes(at::Device device) {
  if (device.is_cpu()) {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
  }
  if (device.is_meta()) return shape_memory_bytes();
  const c10::CachingDeviceAllocator::DeviceStats stats =
      c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .current;
}

void mm_in_onednn(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, float beta) {
  at::native::mkldnn_matmul(a, b, out, beta, 1);
}

at::Tensor linear_in_onednn(const at::Tensor& x, const at::Tensor& weight) {
  using Linear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            std::string_view, c10::List<std::optional<at::Scalar>>,
                            std::optional<std::string_view>);
  static const auto linear = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                 .typed<Linear>();
  const at::NoGradGuard no_grad;
  return linear.call(x, weight, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(),
                     std::nullopt);
}

std::size_t storage_bytes(const at::Tensor& tensor) { return storage_of(tensor).nbytes(); }

}  // namespace tessera::kernels
