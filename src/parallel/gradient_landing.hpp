// SPDX-License-Identifier: Apache-2.0
// The way of reduced gradients down to host memory, for which no computation waits.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/kernels/side_stream.hpp"
#include "tessera/parallel/memory_kinds.hpp"

namespace tessera::parallel {

class GradientLanding {
 public:
  /// Sends `reduced` down to `flat` [chunk_elements] in pinned host memory; with `adds` the host
  /// adds it there when it settles. Settles the one before.
  void send(const at::Tensor& reduced, const at::Tensor& flat, bool adds,
            kernels::SideStream& copies);
  /// Waits until `flat` has what was sent.
  void settle(const at::Tensor& flat);
  std::int64_t bytes_on(at::Device device) const { return parallel::bytes_on(device, from_); }

 private:
  at::Tensor from_;    ///< on its way
  at::Tensor beside_;  ///< where it lands if there is something in `flat` already
  kernels::SideStream::Mark landed_;
  bool under_way_ = false, adds_ = false;
};

}  // namespace tessera::parallel
