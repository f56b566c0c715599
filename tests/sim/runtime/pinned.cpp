// SPDX-License-Identifier: Apache-2.0
#include "pinned.hpp"

#include <cstdlib>
#include <iterator>

namespace tessera::cudart {

PinnedMemory& PinnedMemory::get() {
  static PinnedMemory* const instance = new PinnedMemory;
  return *instance;
}

void* PinnedMemory::allocate(std::size_t bytes, int device) {
  constexpr std::size_t page_bytes = 4096;
  bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(page_bytes, bytes));
  if (data == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  allocations_[data] = {data, bytes, device};
  return data;
}

Allocation PinnedMemory::remove(void* data) {
  const std::lock_guard lock(mutex_);
  const auto node = allocations_.extract(static_cast<std::byte*>(data));
  return node ? node.mapped() : Allocation{};
}

void PinnedMemory::release(const Allocation& allocation) { std::free(allocation.data); }

Allocation PinnedMemory::find(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto next = allocations_.upper_bound(byte);
  if (next == allocations_.begin()) return {};
  const Allocation& around = std::prev(next)->second;
  return byte < around.data + around.bytes ? around : Allocation{};
}

}  // namespace tessera::cudart
