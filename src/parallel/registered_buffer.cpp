// SPDX-License-Identifier: Apache-2.0
#include "registered_buffer.hpp"

#include <ATen/ops/from_blob.h>

#include <memory>

namespace tessera::parallel {

at::Tensor registered_buffer(comm::Communicator& over, std::int64_t bytes, at::Device device) {
  std::shared_ptr<void> memory = over.registered_memory(static_cast<std::size_t>(bytes));
  if (!memory) return {};
  void* const data = memory.get();
  return at::for_blob(data, {bytes})
      .deleter([memory = std::move(memory)](void*) {})
      .options(at::TensorOptions(at::kByte).device(device))
      .target_device(device)
      .make_tensor();
}

}  // namespace tessera::parallel
