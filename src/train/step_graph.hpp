// SPDX-License-Identifier: Apache-2.0
// Work of a GPU that is recorded once and launched with one call: a CUDA graph.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <memory>
#include <string>

namespace tessera::train {

class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Records what `work` gives the device, instead of what was recorded before. Nothing of it runs.
  /// `work` must neither wait for the device nor make it wait for what was issued before. Tensors
  /// that `work` makes keep their memory while this lives: later launches write it again. Returns
  /// why `work`, which may have ended early, cannot be recorded; empty: it was. What it throws for
  /// another reason passes.
  [[nodiscard]] virtual std::string capture(const std::function<void()>& work) = 0;
  /// Gives the current stream what was recorded.
  virtual void launch() = 0;
};

/// Null for the host.
std::unique_ptr<StepGraph> make_step_graph(at::Device device);

}  // namespace tessera::train
