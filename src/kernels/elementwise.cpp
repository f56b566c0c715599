// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/elementwise.hpp"

#include "backend.hpp"

namespace tessera::kernels {

double sum_of_squares(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  return values.numel() == 0 ? 0.0 : backend_of(values).sum_of_squares(values.contiguous());
}

}  // namespace tessera::kernels
