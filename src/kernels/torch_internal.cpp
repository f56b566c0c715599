#include "tessera/kernels/torch_internal.hpp"

#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  TESSERA_EXPECT(tensor.defined() && tensor.has_storage(), "a tensor without storage has no memory to give back");
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

std::size_t storage_bytes(const at::Tensor& tensor) { return storage_of(tensor).nbytes(); }

}  // namespace tessera::kernels
