// SPDX-License-Identifier: Apache-2.0
// Activations in host memory: what a unit keeps between forward and backward leaves the device on a
// stream of its own, while the units behind it compute, and comes back one unit ahead of the
// backward pass (as in https://arxiv.org/abs/1602.08124).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tessera/kernels/side_stream.hpp"

namespace tessera::parallel {

/// What a unit keeps of one microbatch. Made and moved by ActivationOffload alone.
struct OffloadedPass;

/// The device's memory goes by the order of the current stream: what has left is freed where that
/// stream waits for the copy, after the forward of the next unit. So the memory that a step takes
/// does not depend on the speed of copies.
class ActivationOffload {
 public:
  /// `device`: a GPU, or kernels::shape_device().
  explicit ActivationOffload(at::Device device);
  ~ActivationOffload();

  using Pass = std::shared_ptr<OffloadedPass>;
  /// After a unit's forward. `kept`: tensors on the device whose memory nobody but this pass reads
  /// before its backward; none of them shares it with another one. The pass that was sent before
  /// leaves the device's memory here.
  Pass send(std::vector<at::Tensor> kept);
  /// Lets it come back, unless it is still there. Null: does nothing, as all functions below.
  void fetch(const Pass& pass);
  /// Its tensors may be read on the current stream.
  void hold_for(const Pass& pass);
  /// Its backward is issued.
  void done_with(const Pass& pass);
  /// Pinned host memory.
  std::int64_t host_bytes() const { return host_bytes_; }

 private:
  void free_last();
  void take_buffer(OffloadedPass& pass);

  at::Device device_;
  kernels::SideStream copies_;
  Pass last_;                                        ///< sent, and still in the device's memory
  std::multimap<std::int64_t, at::Tensor> buffers_;  ///< free ones, by size
  std::int64_t host_bytes_ = 0;
};

}  // namespace tessera::parallel
