// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

bool is_single_or_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16;
}

void check(const at::Tensor& param, const at::Tensor& other, const char* name) {
  TESSERA_EXPECT(
      other.numel() == param.numel() && other.is_contiguous() && other.device() == param.device(),
      "adamw: {} is not a contiguous companion of the parameter ({} elements for {})", name,
      other.numel(), param.numel());
  const bool doubles = param.scalar_type() == at::kDouble;
  TESSERA_EXPECT(doubles ? other.scalar_type() == at::kDouble : is_single_or_half(other),
                 "adamw: {} has dtype {}", name, c10::toString(other.scalar_type()));
}

AdamWArguments arguments_of(const AdamWScalars& s) {
  return {.gradient_scale = s.gradient_scale,
          .coupled_decay = s.coupled_decay ? s.weight_decay : 0.0,
          .decay = s.coupled_decay ? 1.0 : 1.0 - s.lr * s.weight_decay,
          .beta1 = s.beta1,
          .beta2 = s.beta2,
          .root_correction2 = std::sqrt(s.bias_correction2),
          .eps = s.eps,
          .step = s.lr / s.bias_correction1};
}

/// Equally long pieces of a box, `stride` elements of the whole tensor apart.
struct Level {
  std::int64_t count, stride;
};

/// A box as nested levels: the first are the elements that are neighbours in the whole tensor too,
/// the next are runs of them.
std::vector<Level> levels_of(const Box& box, const Shape& whole) {
  std::vector<Level> levels{{1, 1}};
  std::int64_t stride = 1;
  for (std::size_t dim = whole.size(); dim-- > 0; stride *= whole[dim]) {
    Level& inner = levels.back();
    if (inner.count * inner.stride == stride)
      inner.count *= box.extent[dim];
    else if (box.extent[dim] != 1)
      levels.push_back({box.extent[dim], stride});
  }
  return levels;
}

std::int64_t first_index(const Box& box, const Shape& whole) {
  std::int64_t index = 0;
  for (std::size_t dim = 0; dim < whole.size(); ++dim) index = index * whole[dim] + box.offset[dim];
  return index;
}

/// body(begin, count, noise) for each part of the box that two levels describe: all of it, but for
/// boxes that are cut along three dims or more.
template <class Body>
void for_parts(const StochasticRounding& rounding, const Body& body) {
  std::vector<Level> levels = levels_of(rounding.box, rounding.whole);
  if (levels.size() < 2) levels.push_back({1, levels[0].count});
  RoundingNoise noise{.on = true,
                      .low_key = static_cast<std::uint32_t>(rounding.key),
                      .high_key = static_cast<std::uint32_t>(rounding.key >> 32),
                      .run = levels[0].count,
                      .stride = levels[1].stride};
  const std::int64_t part = levels[0].count * levels[1].count,
                     first = first_index(rounding.box, rounding.whole);
  for (std::int64_t begin = 0; begin < element_count(rounding.box); begin += part) {
    noise.first = first;
    std::int64_t number = begin / part;
    for (std::size_t level = 2; level < levels.size(); ++level) {
      noise.first += number % levels[level].count * levels[level].stride;
      number /= levels[level].count;
    }
    body(begin, part, noise);
  }
}

void check(const at::Tensor& param, const StochasticRounding& rounding) {
  TESSERA_EXPECT(
      lies_in(rounding.box, rounding.whole) && element_count(rounding.box) == param.numel(),
      "adamw: {} elements are no box {} of {}", param.numel(), to_string(rounding.box),
      to_string(rounding.whole));
}

at::Tensor flat_part(const at::Tensor& tensor, std::int64_t begin, std::int64_t count) {
  return tensor.defined() ? tensor.view({-1}).narrow(0, begin, count) : tensor;
}

}  // namespace

void adamw_sweep(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
                 const at::Tensor& exp_avg_sq, const AdamWScalars& scalars,
                 const at::Tensor& compute_copy, const StochasticRounding* rounding) {
  const at::NoGradGuard no_grad;
  TESSERA_EXPECT(
      param.is_contiguous() && (param.scalar_type() == at::kDouble || is_single_or_half(param)),
      "adamw: parameters are contiguous f64, f32 or bf16");
  check(param, grad, "the gradient");
  check(param, exp_avg, "exp_avg");
  check(param, exp_avg_sq, "exp_avg_sq");
  TESSERA_EXPECT(exp_avg.scalar_type() == exp_avg_sq.scalar_type(),
                 "adamw: the moments have two dtypes");
  if (compute_copy.defined()) {
    check(param, compute_copy, "the copy for computing");
    TESSERA_EXPECT(param.scalar_type() == at::kFloat && compute_copy.scalar_type() == at::kBFloat16,
                   "adamw: the copy for computing is bf16, of parameters in f32");
  }
  AdamWArguments arguments = arguments_of(scalars);
  arguments.noise.run = std::max<std::int64_t>(1, param.numel());
  const auto& backend = backend_of(param);
  if (rounding == nullptr) {
    if (param.numel() > 0) backend.adamw(param, grad, exp_avg, exp_avg_sq, arguments, compute_copy);
    return;
  }
  check(param, *rounding);
  for_parts(*rounding, [&](std::int64_t begin, std::int64_t count, const RoundingNoise& noise) {
    arguments.noise = noise;
    const auto part = [&](const at::Tensor& t) { return flat_part(t, begin, count); };
    backend.adamw(part(param), part(grad), part(exp_avg), part(exp_avg_sq), arguments,
                  part(compute_copy));
  });
}

}  // namespace tessera::kernels
