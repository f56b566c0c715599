// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/matrix_product.hpp"

#include <ATen/ops/addmm.h>

#include <algorithm>

#include "host/transposed.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/kernels/instruction_set.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/torch_internal.hpp"
#include "widening.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

constexpr std::int64_t kTile = std::int64_t{1} << 21;  ///< elements of a widened tile: 8 MiB
constexpr std::int64_t kFewest = 64;  ///< rows of a tile: fewer would multiply slowly

/// Rows of `width` elements that one tile holds.
std::int64_t tile_rows(std::int64_t width) {
  return std::max(kFewest, kTile / std::max<std::int64_t>(1, width));
}

/// body(begin, size) over [0, count), `most` at a time.
template <class Body>
void for_tiles(std::int64_t count, std::int64_t most, const Body& body) {
  for (std::int64_t begin = 0; begin < count; begin += most)
    body(begin, std::min(most, count - begin));
}

/// part <- a b, or part + a b, of float32 a and b; `part` may be bfloat16.
void tile_product(const Tensor& part, const Tensor& a, const Tensor& b, bool add) {
  if (part.scalar_type() == at::kBFloat16)
    narrow_into(part, add ? widened(part).addmm_(a, b) : kernels::mm(a, b));
  else
    (add ? kernels::addmm_ : kernels::mm_out)(part, a, b);
}

/// out <- a b, or out + a b. Each element is one float32 sum over all of k.
void widened_product(const Tensor& out, const Tensor& a, const Tensor& b, bool add) {
  const std::int64_t columns = tile_rows(a.size(1));
  const std::int64_t rows = tile_rows(std::max(a.size(1), std::min(columns, b.size(1))));
  for_tiles(b.size(1), columns, [&](std::int64_t column, std::int64_t width) {
    const Tensor wide_b = widened(b.narrow(1, column, width));
    for_tiles(a.size(0), rows, [&](std::int64_t row, std::int64_t height) {
      const Tensor part = out.narrow(0, row, height).narrow(1, column, width);
      const Tensor wide_a = widened(a.narrow(0, row, height));
      tile_product(part, wide_a, wide_b, add);
    });
  });
}

/// Smaller products cost oneDNN more for its calls than it gains. The choice depends on nothing but
/// the shapes.
constexpr std::int64_t kWorthOneDnn = std::int64_t{1} << 21;

/// Whether large float32 products run in oneDNN in this process.
bool uses_onednn() {
  static const bool fast = has_fast_onednn() && at::hasMKLDNN();
  return fast;
}

/// LibTorch calls oneDNN with memory for the result on processors with AVX-512 only.
bool onednn_takes_outputs() { return instruction_set() == InstructionSet::avx512; }

bool is_in_onednn(const Tensor& x) {
  return uses_onednn() && x.scalar_type() == at::kFloat && x.is_cpu();
}

bool is_in_onednn(const Tensor& a, const Tensor& b) {
  return is_in_onednn(a) && a.size(0) * a.size(1) * b.size(1) >= kWorthOneDnn;
}

/// x with contiguous rows where it is a transpose. LibTorch copies the inputs of oneDNN's linear
/// layers so, on one thread; weights it takes as they are.
Tensor in_rows(const Tensor& x) { return by_columns(x) ? transposed_copy(x.t()) : x; }

/// Are these bfloat16 products to be left in float32?
bool stays_wide(const Tensor& out, const Tensor& a) {
  return a.scalar_type() == at::kBFloat16 && out.scalar_type() == at::kFloat;
}

void expect_fitting(const Tensor& out, const Tensor& a, const Tensor& b) {
  TESSERA_EXPECT(a.dim() == 2 && b.dim() == 2 && out.dim() == 2 && a.size(1) == b.size(0) &&
                     out.size(0) == a.size(0) && out.size(1) == b.size(1),
                 "the shapes of a matrix product do not fit");
}

/// Of x and weight, by this file's products.
struct Linear final : Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &x = inputs[0], &weight = inputs[1];
    kept.save({x, weight});
    auto shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return {kernels::mm(x.reshape({-1, x.size(-1)}), weight.t()).view(shape)};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor &x = saved[0], &weight = saved[1], g = gradients[0].reshape({-1, weight.size(0)});
    Tensor of_x, of_weight;
    if (kept.needs_gradient(0)) of_x = kernels::mm(g, weight).view(x.sizes());
    if (kept.needs_gradient(1)) of_weight = kernels::mm(g.t(), x.reshape({-1, x.size(-1)}));
    return {of_x, of_weight};
  }
};

Tensor widened_matmul(const Tensor& a, const Tensor& b) {
  return at::matmul(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
}

/// Of both operands.
struct WidenedMatmul final : Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1]});
    return {widened_matmul(inputs[0], inputs[1])};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    Tensor of_a, of_b;
    if (kept.needs_gradient(0)) of_a = widened_matmul(gradients[0], saved[1].transpose(-1, -2));
    if (kept.needs_gradient(1)) of_b = widened_matmul(saved[0].transpose(-1, -2), gradients[0]);
    return {of_a, of_b};
  }
};

}  // namespace

bool widens(const Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && x.is_cpu() && !has_fast_bfloat16();
}

std::string host_engines() {
  return fmt::format("{}, float32 {}, bfloat16 {}", host_kernels(),
                     uses_onednn()  ? "oneDNN"
                     : at::hasMKL() ? "MKL"
                                    : "LibTorch",
                     has_fast_bfloat16() ? "oneDNN" : "widened");
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (!widens(a) && !is_in_onednn(a, b)) return at::mm(a, b);
  if (!widens(a) && !onednn_takes_outputs()) return linear_in_onednn(in_rows(a), b.t());
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  kernels::mm_out(out, a, b);
  return out;
}

void mm_out(Tensor out, const Tensor& a, const Tensor& b) {
  const at::NoGradGuard no_grad;
  expect_fitting(out, a, b);
  if (widens(a) || (stays_wide(out, a) && a.is_cpu()))
    widened_product(out, a, b, false);
  else if (stays_wide(out, a))
    at::mm_out(out, a, b, at::kFloat);
  else if (is_in_onednn(a, b) && onednn_takes_outputs())
    mm_in_onednn(out, a, b, 0);
  else
    at::mm_out(out, a, b);
}

void addmm_(Tensor sum, const Tensor& a, const Tensor& b) {
  const at::NoGradGuard no_grad;
  expect_fitting(sum, a, b);
  if (widens(a) || (stays_wide(sum, a) && a.is_cpu()))
    widened_product(sum, a, b, true);
  else if (stays_wide(sum, a))
    at::addmm_out(sum, sum, a, b, at::kFloat);
  else if (is_in_onednn(a, b) && onednn_takes_outputs())
    mm_in_onednn(sum, a, b, 1);
  else
    sum.addmm_(a, b);
}

Tensor linear(const Tensor& x, const Tensor& weight) {
  return widens(x) || is_in_onednn(x) ? apply(Linear(), {x, weight}) : at::linear(x, weight);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (!widens(a)) return at::matmul(a, b);
  TESSERA_EXPECT(
      a.dim() == b.dim() && a.sizes().slice(0, a.dim() - 2).equals(b.sizes().slice(0, a.dim() - 2)),
      "the leading dimensions of two batches of matrices differ");
  return apply(WidenedMatmul(), {a, b});
}

}  // namespace tessera::kernels
