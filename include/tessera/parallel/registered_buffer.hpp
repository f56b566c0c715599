// SPDX-License-Identifier: Apache-2.0
// Memory of tensors that a communicator has registered (parallelism.fsdp_register_buffers).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>

#include "tessera/comm/communicator.hpp"

namespace tessera::parallel {

/// [bytes] of kByte on `device` for a buffer of a collective of `over`, which keeps the memory when
/// the tensor is gone. Undefined where the back end has none: see
/// comm::Communicator::registered_memory(), whose rules for callers hold here.
at::Tensor registered_buffer(comm::Communicator& over, std::int64_t bytes, at::Device device);

}  // namespace tessera::parallel
