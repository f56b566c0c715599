// SPDX-License-Identifier: Apache-2.0
// Sums over ranks in device memory whose bits do not depend on the library that moves them.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>

#include "tessera/comm/communicator.hpp"

namespace tessera::parallel {

/// `inner`, which moves memory of `device`, with other sums of floating-point numbers: all_reduce
/// and reduce_scatter gather what the ranks have and add it over the same tree of rank numbers as
/// communicators of host memory do (comm::Communicator), in float32 (float64 for f64), rounded
/// once. NCCL's own order depends on the number of ranks, the size of the message and its
/// algorithm. Such a call needs memory for what all ranks send, and the compute stream waits for it
/// at once. A communicator over MPI is returned as it is: its sums have that order already. Also
/// for the communicators that are split from it. Collective where making one is.
std::unique_ptr<comm::Communicator> with_ordered_sums(std::unique_ptr<comm::Communicator> inner,
                                                      at::Device device);

}  // namespace tessera::parallel
