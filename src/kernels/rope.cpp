// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rope.hpp"

#include <numbers>

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool inverse) {
  const bool in_place = x.stride(3) == 1 && (x.size(2) == 1 || x.stride(2) == x.size(3));
  at::Tensor y = at::empty(x.sizes(), x.options());
  backend_of(x).rope(in_place ? x : x.contiguous(), cos, sin, y, inverse);
  return y;
}

/// Of x, cos and sin.
struct Rope final : Operation {
  std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) override {
    kept.save({inputs[1], inputs[2]});
    return {rotate(inputs[0], inputs[1], inputs[2], false)};
  }
  std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) override {
    const auto saved = kept.saved();
    return {rotate(gradients[0], saved[0], saved[1], true), {}, {}};
  }
};

/// Llama 3.1's piecewise rule, in the dtype of `frequencies` and in the reference's order of
/// operations.
at::Tensor scaled(const at::Tensor& frequencies, const RopeScaling& s) {
  const auto original = static_cast<double>(s.original_max_positions);
  const at::Tensor wavelength = (2 * std::numbers::pi) / frequencies;
  const at::Tensor is_long = wavelength > original / s.low_frequency_factor;
  const at::Tensor is_short = wavelength < original / s.high_frequency_factor;
  const at::Tensor smooth = (original / wavelength - s.low_frequency_factor) /
                            (s.high_frequency_factor - s.low_frequency_factor);
  const at::Tensor between = (1 - smooth) * frequencies / s.factor + smooth * frequencies;
  return at::where(is_long, frequencies / s.factor, at::where(is_short, frequencies, between));
}

}  // namespace

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  TESSERA_EXPECT(x.dim() == 4 && x.size(3) % 2 == 0, "rope needs [B, S, H, hd] with an even hd");
  TESSERA_EXPECT(
      cos.sizes() == at::IntArrayRef({x.size(1), x.size(3) / 2}) && cos.sizes() == sin.sizes(),
      "rope tables do not fit {} positions of head_dim {}", x.size(1), x.size(3));
  TESSERA_EXPECT(cos.scalar_type() == compute_type(x) && sin.scalar_type() == cos.scalar_type() &&
                     cos.is_contiguous() && sin.is_contiguous() && cos.device() == x.device() &&
                     sin.device() == x.device(),
                 "rope tables must be contiguous {} on {}", c10::toString(compute_type(x)),
                 x.device().str());
  return apply(Rope(), {x, cos, sin});
}

at::Tensor rope_frequencies(std::int64_t head_dim, double theta,
                            const std::optional<RopeScaling>& scaling, at::ScalarType dtype) {
  TESSERA_EXPECT(dtype == at::kFloat || dtype == at::kDouble, "rope frequencies are f32 or f64");
  TESSERA_EXPECT(head_dim > 0 && head_dim % 2 == 0, "head_dim {} is not even", head_dim);
  const at::NoGradGuard no_grad;
  const at::Tensor exponents = at::arange(0, head_dim, 2, at::TensorOptions(at::kLong)).to(dtype) /
                               static_cast<double>(head_dim);
  const at::Tensor frequencies = 1.0 / at::pow(theta, exponents);
  return scaling ? scaled(frequencies, *scaling) : frequencies;
}

RopeTables rope_tables(std::int64_t seq, std::int64_t head_dim, double theta,
                       const std::optional<RopeScaling>& scaling, at::ScalarType dtype,
                       std::int64_t first_position) {
  const at::NoGradGuard no_grad;
  const at::Tensor positions =
      at::arange(first_position, first_position + seq, at::TensorOptions(at::kLong)).to(dtype);
  const at::Tensor angles = at::outer(positions, rope_frequencies(head_dim, theta, scaling, dtype));
  return {angles.cos(), angles.sin()};
}

}  // namespace tessera::kernels
