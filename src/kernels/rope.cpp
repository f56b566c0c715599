// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rope.hpp"

#include <algorithm>
#include <numbers>
#include <numeric>

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// `x` [B, S, H, hd], its heads one after the other.
Tensor with_dense_heads(const Tensor& x) {
  const bool dense = x.stride(3) == 1 && (x.size(2) == 1 || x.stride(2) == x.size(3));
  return dense ? x : x.contiguous();
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  const RopePart part{with_dense_heads(x), at::empty(x.sizes(), x.options())};
  backend_of(x).rope(std::span(&part, 1), cos, sin, inverse);
  return part.y;
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

/// Of queries, keys and values [T, H hd], cos and sin.
class OfHeads final : public Operation {
 public:
  OfHeads(std::int64_t batch, std::int64_t head_dim, bool in_place, bool neighbours)
      : batch_(batch), head_dim_(head_dim), in_place_(in_place), neighbours_(neighbours) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[3], inputs[4]});
    std::vector<RopePart> parts;
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor x = heads_of(inputs[i]);
      parts.push_back({x, in_place_ ? x : at::empty(x.sizes(), x.options())});
    }
    backend_of(inputs[0]).rope(parts, inputs[3], inputs[4], false);
    return {parts[0].y.variable_data(), parts[1].y.variable_data(),
            heads_of(inputs[2]).variable_data()};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    std::vector<Tensor> of_inputs = memory_like(gradients);
    std::vector<RopePart> parts;
    for (std::size_t i = 0; i < of_inputs.size(); ++i)
      parts.push_back({with_dense_heads(gradients[i]), heads_of(of_inputs[i]), i < 2});
    backend_of(saved[0]).rope(parts, saved[0], saved[1], true);
    if (of_inputs.size() == 2) of_inputs.push_back(gradients[2].flatten(2).flatten(0, 1));
    of_inputs.resize(5);
    return of_inputs;
  }

 private:
  Tensor heads_of(const Tensor& x) const {
    return x.view({batch_, x.size(0) / batch_, x.size(1) / head_dim_, head_dim_});
  }
  /// [T, H hd] for each, together if the inputs are; else for the turned ones alone.
  std::vector<Tensor> memory_like(const std::vector<Tensor>& heads) const {
    const std::int64_t tokens = heads[0].size(0) * heads[0].size(1);
    std::vector<std::int64_t> widths;
    for (const Tensor& x : heads) widths.push_back(x.size(2) * head_dim_);
    std::vector<Tensor> memory;
    if (neighbours_)
      return columns_of(
          at::empty({tokens, std::reduce(widths.begin(), widths.end())}, heads[0].options()),
          widths);
    for (std::size_t i = 0; i < 2; ++i)
      memory.push_back(at::empty({tokens, widths[i]}, heads[0].options()));
    return memory;
  }

  std::int64_t batch_, head_dim_;
  bool in_place_, neighbours_;
};

/// Does nothing but these tensors show their memory?
bool are_alone(std::span<const Tensor> tensors) {
  return std::ranges::all_of(tensors, [&](const Tensor& x) {
    const auto sharing =
        std::ranges::count_if(tensors, [&x](const Tensor& other) { return other.is_alias_of(x); });
    return x.use_count() == 1 && std::cmp_equal(x.storage().use_count(), sharing);
  });
}

void expect_tables(const Tensor& x, std::int64_t positions, std::int64_t head_dim,
                   const Tensor& cos, const Tensor& sin) {
  TESSERA_EXPECT(
      cos.sizes() == at::IntArrayRef({positions, head_dim / 2}) && cos.sizes() == sin.sizes(),
      "rope tables do not fit {} positions of head_dim {}", positions, head_dim);
  TESSERA_EXPECT(cos.scalar_type() == accumulation_type(x) &&
                     sin.scalar_type() == cos.scalar_type() && cos.is_contiguous() &&
                     sin.is_contiguous() && cos.device() == x.device() &&
                     sin.device() == x.device(),
                 "rope tables must be contiguous {} on {}", c10::toString(accumulation_type(x)),
                 x.device().str());
}

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
  expect_tables(x, x.size(1), x.size(3), cos, sin);
  return apply(Rope(), {x, cos, sin});
}

Heads rope_heads(std::vector<at::Tensor> products, std::int64_t batch, std::int64_t head_dim,
                 const at::Tensor& cos, const at::Tensor& sin) {
  TESSERA_EXPECT(products.size() == 3 && head_dim > 0 && head_dim % 2 == 0 && batch > 0,
                 "rope needs queries, keys and values with an even head_dim");
  for (const at::Tensor& x : products)
    TESSERA_EXPECT(x.dim() == 2 && x.size(0) == products[0].size(0) && x.size(0) % batch == 0 &&
                       x.size(1) % head_dim == 0 && x.stride(1) == 1 &&
                       x.scalar_type() == products[0].scalar_type(),
                   "rope of heads that do not fit each other");
  expect_tables(products[0], products[0].size(0) / batch, head_dim, cos, sin);
  OfHeads operation(batch, head_dim, are_alone(products), are_neighbours(products));
  products.push_back(cos);
  products.push_back(sin);
  const auto made = apply_all(std::make_unique<OfHeads>(std::move(operation)), std::move(products));
  return {made[0], made[1], made[2]};
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
