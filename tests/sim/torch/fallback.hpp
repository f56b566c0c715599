// SPDX-License-Identifier: Apache-2.0
// Operators that have no kernel of their own on the simulated device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>
#include <vector>

namespace tessera::sim {

/// Runs the CPU kernel of `op` on twins of the device tensors among the arguments (host_twins.hpp).
/// - Results that are arguments, in place or out=: the CPU kernel writes into them.
/// - Fresh results: the kernel runs at once into host memory, from which new device tensors are
/// filled. Queued as a task where Settings::queued_operators, the arguments are all the results
/// there are, and neither their shapes nor random numbers depend on when it runs. Throws what
/// LibTorch throws on a GPU for host tensors among the arguments that are no scalars.
void fall_back(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// Runs host code that returns fresh tensors, as the fallback does. In a capture it runs once for
/// their shapes and again at each launch, so it owns what it uses.
using HostFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;
std::vector<at::Tensor> run_on_host(const std::string& name, const std::vector<at::Tensor>& inputs,
                                    const HostFunction& function);

/// A device tensor with the values of `host`. An undefined tensor for an undefined one.
at::Tensor to_device(const std::string& name, const at::Tensor& host, at::Device device);

}  // namespace tessera::sim
