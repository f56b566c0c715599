// SPDX-License-Identifier: Apache-2.0
// Fresh results of an operator whose work a graph does later: tensors of the right shapes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {

/// The same arguments with zeros of their own for each tensor. What an operator returns for them
/// has the shapes and strides of what it is going to return: none of those that a graph may hold
/// makes shapes out of values.
torch::jit::Stack stand_ins_of(const torch::jit::Stack& arguments);

class CapturedResults {
 public:
  /// Device tensors like the tensors in `example`: tensors, lists of them, or other values, which
  /// stay.
  CapturedResults(torch::jit::Stack example, at::Device device);

  /// Host twins of them; undefined for undefined ones.
  const std::vector<at::Tensor>& twins() const { return twins_; }
  void add_accesses(std::vector<Access>& accesses) const;
  torch::jit::Stack take() { return std::move(results_); }

  /// Copies what was computed.
  static void fill(const std::vector<at::Tensor>& twins, const torch::jit::Stack& computed);

 private:
  at::Tensor like(const at::Tensor& example, at::Device device);

  torch::jit::Stack results_;
  std::vector<at::Tensor> tensors_, twins_;
};

}  // namespace tessera::sim
