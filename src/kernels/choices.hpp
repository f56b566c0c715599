// SPDX-License-Identifier: Apache-2.0
// How sum_of_choices() is computed on tensors that were checked: contiguous, and of types that fit.
#pragma once

#include <utility>

#include "tessera/kernels/choices.hpp"
#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// Weights may be undefined: all are 1.
using ChoiceSum = at::Tensor(const at::Tensor& rows, const at::Tensor& places,
                             const at::Tensor& weights, Paired paired);
/// Gradients of `count` rows and of weights. Without weights, these and the rows are undefined.
using ChoiceSumBackward = std::pair<at::Tensor, at::Tensor>(
    const at::Tensor& gradient, const at::Tensor& rows, std::int64_t count,
    const at::Tensor& places, const at::Tensor& weights, Paired paired);

/// LibTorch's: the host's way, and the reference of the others.
namespace by_operators {
ChoiceSum sum_of_choices;
ChoiceSumBackward sum_of_choices_backward;
}  // namespace by_operators

/// In builds with CUDA: a kernel each.
namespace device {
ChoiceSum sum_of_choices;
ChoiceSumBackward sum_of_choices_backward;
}  // namespace device

}  // namespace tessera::kernels
