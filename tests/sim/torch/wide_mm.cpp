// SPDX-License-Identifier: Apache-2.0
// Twins of LibTorch's products on CUDA whose result is wider than their operands, which its CPU
// does not have.
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include "fallback.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

Tensor product(const Tensor& a, const Tensor& b, at::ScalarType type, const Tensor& out) {
  TORCH_CHECK(a.scalar_type() == at::kBFloat16 || a.scalar_type() == at::kHalf,
              "out_dtype is only supported for operands of 16 bits");
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && type == at::kFloat &&
                  out.scalar_type() == type && a.size(1) == b.size(0),
              "the types or shapes of a wide product do not fit");
  return run_on_host("aten::mm", {a, b}, [](const auto& in) {
    return std::vector<Tensor>{at::mm(in[0].to(at::kFloat), in[1].to(at::kFloat))};
  })[0];
}

Tensor& mm_out(const Tensor& a, const Tensor& b, at::ScalarType type, Tensor& out) {
  return out.copy_(product(a, b, type, out));
}

Tensor& addmm_out(const Tensor& sum, const Tensor& a, const Tensor& b, at::ScalarType type,
                  const at::Scalar& beta, const at::Scalar& alpha, Tensor& out) {
  TORCH_CHECK(out.is_same(sum) && beta.equal(1) && alpha.equal(1),
              "the simulated wide product adds to its result only");
  return out.add_(product(a, b, type, out));
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("mm.dtype_out", &mm_out);
  m.impl("addmm.dtype_out", &addmm_out);
}

}  // namespace
}  // namespace tessera::sim
