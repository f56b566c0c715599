// SPDX-License-Identifier: Apache-2.0
// A twin of LibTorch's product of 8-bit floats on CUDA, with its conditions.
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include "fallback.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

bool is_float8(const Tensor& x) {
  return x.scalar_type() == at::kFloat8_e4m3fn || x.scalar_type() == at::kFloat8_e5m2;
}

/// One scale for each matrix, or one for each row of `a` and each column of `b`.
void expect_scales(const Tensor& a, const Tensor& b, const Tensor& of_a, const Tensor& of_b,
                   at::ScalarType out) {
  TORCH_CHECK(of_a.scalar_type() == at::kFloat && of_b.scalar_type() == at::kFloat,
              "Both scale_a and scale_b must be float (fp32) tensors");
  const auto aligned = [](const Tensor& x) {
    return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0;
  };
  TORCH_CHECK(aligned(of_a) && aligned(of_b),
              "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED: scales begin at no multiple of 16 bytes");
  if (of_a.numel() == 1 && of_b.numel() == 1) return;
  TORCH_CHECK(of_a.dim() == 2 && of_a.size(0) == a.size(0) && of_a.size(1) == 1 &&
                  of_b.dim() == 2 && of_b.size(0) == 1 && of_b.size(1) == b.size(1) &&
                  of_a.is_contiguous() && of_b.is_contiguous(),
              "Invalid scaling configuration");
  TORCH_CHECK(a.scalar_type() == at::kFloat8_e4m3fn && b.scalar_type() == at::kFloat8_e4m3fn,
              "Only e4m3 is supported with scales of rows");
  TORCH_CHECK(out == at::kBFloat16,
              "Only bf16 high precision output types are supported for row-wise scaling");
}

void expect_supported(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
              "mat1 and mat2 shapes cannot be multiplied");
  TORCH_CHECK(is_float8(a) && is_float8(b), "Expected both operands to be float8");
  TORCH_CHECK(a.scalar_type() != at::kFloat8_e5m2 || b.scalar_type() != at::kFloat8_e5m2,
              "Multiplication of two Float8_e5m2 matrices is not supported");
  TORCH_CHECK(a.stride(1) == 1 && a.stride(0) >= a.size(1), "mat1 must be row_major");
  TORCH_CHECK(b.stride(0) == 1 && b.stride(1) >= b.size(0), "mat2 must be col_major");
  TORCH_CHECK(a.size(1) % 16 == 0,
              "Expected trailing dimension of mat1 to be divisible by 16 but got ", a.size(1));
  TORCH_CHECK(b.size(1) % 16 == 0, "mat2 shape (", b.size(0), "x", b.size(1),
              ") must be divisible by 16");
}

Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor& of_a, const Tensor& of_b,
                 const std::optional<Tensor>& bias, const std::optional<Tensor>& of_result,
                 std::optional<at::ScalarType> type, bool) {
  const at::ScalarType out = type.value_or(a.scalar_type());
  expect_supported(a, b);
  expect_scales(a, b, of_a, of_b, out);
  TORCH_CHECK(!bias && !of_result && !is_float8(a.new_empty({0}, out)),
              "the simulated product has no bias and no float8 results");
  return run_on_host("aten::_scaled_mm", {a, b, of_a, of_b}, [out](const auto& in) {
    const Tensor sums = at::mm(in[0].to(at::kFloat), in[1].to(at::kFloat));
    return std::vector<Tensor>{sums.mul(in[2]).mul(in[3]).to(out)};
  })[0];
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) { m.impl("_scaled_mm", &scaled_mm); }

}  // namespace
}  // namespace tessera::sim
