// SPDX-License-Identifier: Apache-2.0
// sum_of_choices() of the CUDA table, as backend.hpp says.
#pragma once

#include <utility>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels::device {

at::Tensor sum_of_choices(const at::Tensor& rows, const at::Tensor& places,
                          const at::Tensor& weights);
std::pair<at::Tensor, at::Tensor> sum_of_choices_backward(const at::Tensor& gradient,
                                                          const at::Tensor& rows,
                                                          const at::Tensor& places,
                                                          const at::Tensor& weights);

}  // namespace tessera::kernels::device
