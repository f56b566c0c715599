// SPDX-License-Identifier: Apache-2.0
// sum_of_choices() by LibTorch's operators: the host's way, and the reference of the others.
#pragma once

#include <utility>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels::by_operators {

at::Tensor sum_of_choices(const at::Tensor& rows, const at::Tensor& places,
                          const at::Tensor& weights);
/// Gradients of rows and of weights. Without weights, these and the rows are undefined.
std::pair<at::Tensor, at::Tensor> sum_of_choices_backward(const at::Tensor& gradient,
                                                          const at::Tensor& rows,
                                                          const at::Tensor& places,
                                                          const at::Tensor& weights);

}  // namespace tessera::kernels::by_operators
