// SPDX-License-Identifier: Apache-2.0
// Fresh results of an operator whose work a graph does later: tensors of the right shapes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <functional>

#include "operator_task.hpp"

namespace tessera::sim {

/// The same arguments with zeros of their own for each tensor. What an operator returns for them
/// has the shapes and strides of what it is going to return, unless these follow from values.
torch::jit::Stack stand_ins_of(const torch::jit::Stack& arguments);

/// Results of an operator, for its arguments' host twins.
using Compute = std::function<torch::jit::Stack(const torch::jit::Stack&)>;

/// Gives the graph a task that computes results at each launch; `stand_ins` are for `arguments` as
/// above. Returns the results: tensors of `device`, lists of them, or other values.
torch::jit::Stack capture_results(OperatorTask task, at::Device device,
                                  const torch::jit::Stack& arguments,
                                  const torch::jit::Stack& stand_ins, const Compute& compute);

}  // namespace tessera::sim
