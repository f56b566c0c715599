// SPDX-License-Identifier: Apache-2.0
// A launch on the simulated GPU.
#pragma once

#include "block.hpp"
#include "cuda/operand.hpp"

namespace tessera::sim {

/// Makes the launch a task of its stream, at once or queued as the settings say, which reads and
/// writes its operands. A fault (an operand or an access that is not in device memory or not among
/// the operands, a race in shared memory, a barrier that not all threads reach) becomes the
/// device's sticky error with a text that names kernel and thread.
void issue_kernel(const kernels::device::Launch& launch, BlockBody body);

}  // namespace tessera::sim
