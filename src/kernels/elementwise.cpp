// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/elementwise.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

void check_pair(const at::Tensor& destination, const at::Tensor& source) {
  TESSERA_EXPECT(
      destination.is_contiguous() && source.is_contiguous() &&
          destination.numel() == source.numel() && destination.device() == source.device(),
      "two flat tensors must be contiguous, of one size, on one device ({} and {} elements)",
      destination.numel(), source.numel());
}

}  // namespace

void cast_into(const at::Tensor& destination, const at::Tensor& source) {
  const at::NoGradGuard no_grad;
  check_pair(destination, source);
  if (source.numel() > 0) backend_of(source).cast(destination, source);
}

void accumulate(const at::Tensor& destination, const at::Tensor& source) {
  const at::NoGradGuard no_grad;
  check_pair(destination, source);
  TESSERA_EXPECT(
      destination.scalar_type() == at::kFloat || destination.scalar_type() == at::kDouble,
      "sums are kept in f32 or f64, not {}", c10::toString(destination.scalar_type()));
  if (source.numel() > 0) backend_of(source).accumulate(destination, source);
}

double sum_of_squares(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  return values.numel() == 0 ? 0.0 : backend_of(values).sum_of_squares(values.contiguous());
}

}  // namespace tessera::kernels
