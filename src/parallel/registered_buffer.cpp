// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/registered_buffer.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <memory>

#include "tessera/parallel/memory_kinds.hpp"

namespace tessera::parallel {
namespace {

std::atomic<std::int64_t> lent = 0;

}  // namespace

std::int64_t registered_bytes() { return lent; }

at::Tensor registered_buffer(comm::Communicator& over, std::int64_t bytes, at::Device device) {
  // LibTorch gives back what it keeps for tensors to come, as for an allocation of its own.
  const auto make_room = [&] { c10::getDeviceAllocator(device.type())->emptyCache(); };
  std::shared_ptr<void> memory = over.registered_memory(static_cast<std::size_t>(bytes), make_room);
  if (!memory) return {};
  lent += bytes;
  void* const data = memory.get();
  return at::for_blob(data, {bytes})
      .deleter([memory = std::move(memory), bytes](void*) { lent -= bytes; })
      .options(at::TensorOptions(at::kByte).device(device))
      .target_device(device)
      .make_tensor();
}

}  // namespace tessera::parallel
