// SPDX-License-Identifier: Apache-2.0
#include "rotary.hpp"

#include <cmath>
#include <numbers>

#include "tessera/kernels/rope.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

/// The dimension whose wavelength fits `rotations` times into the original positions.
double dimension_of(double rotations, std::int64_t dims, double theta, const Yarn& yarn) {
  const auto positions = static_cast<double>(yarn.original_max_position);
  return static_cast<double>(dims) * std::log(positions / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(theta));
}

/// As transformers' _compute_yarn_parameters and TorchTitan's precompute_freqs_cis.
Tensor yarn_frequencies(std::int64_t dims, double theta, const Yarn& yarn, at::ScalarType dtype) {
  double low = dimension_of(yarn.beta_fast, dims, theta, yarn),
         high = dimension_of(yarn.beta_slow, dims, theta, yarn);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dims - 1));
  if (low == high) high += 0.001;
  const Tensor own = kernels::rope_frequencies(dims, theta, std::nullopt, dtype);
  const Tensor stretched = at::arange(dims / 2, dtype).sub(low).div(high - low).clamp(0, 1);
  return own / yarn.factor * stretched + own * (1 - stretched);
}

}  // namespace

Angles rotary_angles(const DecoderShape& shape, std::int64_t positions, at::ScalarType dtype) {
  const std::int64_t dims = shape.latent ? shape.latent->rope_dim : shape.head_dim;
  if (shape.yarn) {
    const Tensor angles = at::outer(at::arange(positions, dtype),
                                    yarn_frequencies(dims, shape.rope_theta, *shape.yarn, dtype));
    const double factor = shape.yarn->rotation_factor();
    return {angles.cos() * factor, angles.sin() * factor};
  }
  std::optional<kernels::RopeScaling> scaling;
  if (const auto& s = shape.rope_scaling)
    scaling = kernels::RopeScaling{s->factor, s->low_freq_factor, s->high_freq_factor,
                                   s->original_max_position};
  const auto [cos, sin] = kernels::rope_tables(positions, dims, shape.rope_theta, scaling, dtype);
  return {cos, sin};
}

}  // namespace tessera::model
