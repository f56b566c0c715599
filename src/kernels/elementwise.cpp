// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/elementwise.hpp"

#include "backend.hpp"
#include "tessera/kernels/square_sums.hpp"

namespace tessera::kernels {

at::Tensor block_squares(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  return backend_of(values).block_squares(values.contiguous());
}

at::Tensor exact_squares(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  return backend_of(values).exact_squares(values.contiguous());
}

double sum_of_squares(const at::Tensor& values) {
  if (values.numel() == 0) return 0.0;
  const at::Tensor sums = block_squares(values).to(at::kCPU);
  double total = 0;
  for (std::int64_t block = 0; block < sums.numel(); ++block)
    total += sums.const_data_ptr<double>()[block];
  return total;
}

}  // namespace tessera::kernels
