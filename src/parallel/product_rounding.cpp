// SPDX-License-Identifier: Apache-2.0
#include "product_rounding.hpp"

#include <array>

#include "tessera/base/error.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/mx_scales.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using at::Tensor;
using kernels::MxScale;
using kernels::ScaleBlock;
using Tensors = std::vector<Tensor>;
using RoundedOperands = std::vector<RoundedOperand>;

Recipe recipe_of(plan::LinearRecipe recipe) {
  using enum ScaleShare;
  constexpr ScaleShares kAll{all, all}, kLines{line, line}, kBlocks{block, block},
      kTiles{tile, tile}, kTileAndSquare{tile, square};
  switch (recipe) {
    case plan::LinearRecipe::tensorwise:
      return {DType::f8e5m2, Scaling::exact, kAll, kAll, kAll};
    case plan::LinearRecipe::rowwise:
      return {DType::f8e4m3, Scaling::powers_of_two, kLines, kLines, kLines};
    case plan::LinearRecipe::rowwise_with_gw_hp:
      return {DType::f8e4m3, Scaling::powers_of_two, kLines, {line, all}, {nothing, nothing}};
    case plan::LinearRecipe::blockwise:
      return {DType::f8e4m3, Scaling::exact, kTileAndSquare, kTileAndSquare, kTiles};
    case plan::LinearRecipe::mxfp8_floor:
      return {DType::f8e4m3, Scaling::mx_floor, kBlocks, kBlocks, kBlocks};
    case plan::LinearRecipe::mxfp8_rceil:
      return {DType::f8e4m3, Scaling::mx_rceil, kBlocks, kBlocks, kBlocks};
    case plan::LinearRecipe::none:
      break;
  }
  contract_violated("a recipe", __FILE__, __LINE__, "products of this layer are not rounded");
}

/// A matrix on its way into a product.
struct ProductRounding::Operand {
  Tensor matrix;
  DType type;
  ScaleBlock block;
  kernels::ByteOrder order;
  bool across;  ///< other ranks of tp have elements of the same blocks
};

namespace {

constexpr int kUncut = -1;

/// Of a product that sums over dimension `along` of a matrix.
ScaleBlock scale_block(ScaleShare share, int along) {
  ScaleBlock block;
  if (share == ScaleShare::all) return block;
  if (share == ScaleShare::square) return {plan::float8_block, plan::float8_block};
  std::int64_t& summed = along == 1 ? block.columns : block.rows;
  std::int64_t& other = along == 1 ? block.rows : block.columns;
  if (share == ScaleShare::block) summed = mx_block;
  if (share == ScaleShare::tile) summed = plan::float8_block;
  other = 1;
  return block;
}

kernels::ByteOrder order_of(int along) {
  return along == 1 ? kernels::ByteOrder::rows : kernels::ByteOrder::columns;
}

}  // namespace

RoundedOperand transposed(const RoundedOperand& operand) {
  if (operand.value.defined()) return {operand.value.t(), {}};
  return {{}, kernels::transposed(operand.bytes)};
}

RoundedOperands ProductRounding::forward(const Tensor& x, const Tensors& weights) const {
  std::vector<Operand> operands{operand_x(x, recipe_.forward.left, 1)};
  for (const Tensor& weight : weights)
    operands.push_back(operand_weight(weight, recipe_.forward.right, 1));
  return rounded(operands);
}

RoundedOperand ProductRounding::gathered(const Tensor& weight) const {
  if (device_multiplies(weight)) return {{}, *how_.gathered};
  return {kernels::from_bytes(*how_.gathered, type_of_values(weight)), {}};
}

RoundedOperands ProductRounding::of_input(const Tensor& g, const Tensor& weight) const {
  if (how_.gathered)
    return {rounded(std::array{operand_g(g, recipe_.of_input.left, 1)})[0], gathered(weight)};
  return rounded(std::array{operand_g(g, recipe_.of_input.left, 1),
                            operand_weight(weight, recipe_.of_input.right, 0)});
}

RoundedOperand ProductRounding::weight_of_input(const Tensor& weight) const {
  return rounded(std::array{operand_weight(weight, recipe_.of_input.right, 0)})[0];
}

std::optional<RoundedGradient> ProductRounding::g_of_both(const Tensor& g) const {
  const bool lines =
      recipe_.of_input.left == ScaleShare::line && recipe_.of_weight.left == ScaleShare::line;
  if (!lines || !rounds_weight_gradients() || !device_multiplies(g)) return std::nullopt;
  const bool alone = how_.tp->size() == 1;
  if (!alone &&
      (operand_g(g, ScaleShare::line, 1).across || operand_g(g, ScaleShare::line, 0).across))
    return std::nullopt;
  const kernels::ScaledBothWays both =
      kernels::to_scaled_both_ways(g, recipe_.gradients, recipe_.scaling == Scaling::powers_of_two);
  return RoundedGradient{{{}, both.rows}, {{}, both.columns}};
}

RoundedOperand ProductRounding::g_of_weight(const Tensor& g) const {
  return rounded(std::array{operand_g(g, recipe_.of_weight.left, 0)})[0];
}

RoundedOperand ProductRounding::x_of_weight(const Tensor& x) const {
  return rounded(std::array{operand_x(x, recipe_.of_weight.right, 0)})[0];
}

namespace {

/// `cut`: the dimension of which tp has parts. A block, tile or square is in one part.
bool is_across(const Tensor& matrix, ScaleShare share, int along, int cut) {
  if (share == ScaleShare::tile) return false;  // ranks that have all tokens may have any number
  if (share == ScaleShare::square) {
    TESSERA_EXPECT(cut == kUncut || matrix.size(cut) % plan::float8_block == 0,
                   "{} elements on a rank, in blocks of {}", matrix.size(cut), plan::float8_block);
    return false;
  }
  if (share == ScaleShare::block) {
    TESSERA_EXPECT(matrix.size(along) % mx_block == 0,
                   "an MX product over {} elements, in blocks of {}", matrix.size(along), mx_block);
    return false;
  }
  return cut != kUncut && (share == ScaleShare::all || cut == along);
}

}  // namespace

/// The dimension of which tp has parts, of a matrix rows x columns of these.
int ProductRounding::cut_of(LinearCut rows, LinearCut columns) const {
  if (how_.tp->size() == 1) return kUncut;
  return how_.cut == rows ? 0 : how_.cut == columns ? 1 : kUncut;
}

ProductRounding::Operand ProductRounding::operand_x(const Tensor& x, ScaleShare share,
                                                    int along) const {
  const int cut = cut_of(LinearCut::tokens, LinearCut::inputs);
  return {x, DType::f8e4m3, scale_block(share, along), order_of(along),
          is_across(x, share, along, cut)};
}

/// Experts' matrices are one, of which a column has a scale for each of them.
ProductRounding::Operand ProductRounding::operand_weight(const Tensor& weight, ScaleShare share,
                                                         int along) const {
  const int cut = cut_of(LinearCut::outputs, LinearCut::inputs);
  const bool experts = weight.dim() == 3;
  const Tensor matrix = experts ? weight.flatten(0, 1) : weight;
  ScaleBlock block = scale_block(share, along);
  if (experts && share == ScaleShare::line && along == 0) block.rows = weight.size(1);
  return {matrix, DType::f8e4m3, block, order_of(along), is_across(matrix, share, along, cut)};
}

ProductRounding::Operand ProductRounding::operand_g(const Tensor& g, ScaleShare share,
                                                    int along) const {
  const int cut = cut_of(LinearCut::tokens, LinearCut::outputs);
  return {g, recipe_.gradients, scale_block(share, along), order_of(along),
          is_across(g, share, along, cut)};
}

RoundedOperands ProductRounding::rounded(std::span<const Operand> operands) const {
  Tensors largest(operands.size());
  RoundedOperands results;
  if (how_.tp->size() > 1) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].across)
        largest[i] = kernels::largest_magnitudes(operands[i].matrix, operands[i].block);
    take_largest_of_ranks(largest);
  }
  for (std::size_t i = 0; i < operands.size(); ++i)
    results.push_back(rounded_by(operands[i], largest[i]));
  return results;
}

RoundedOperand ProductRounding::rounded_by(const Operand& operand, const Tensor& largest) const {
  const auto& [matrix, type, block, order, across] = operand;
  const bool mx = recipe_.scaling == Scaling::mx_floor || recipe_.scaling == Scaling::mx_rceil;
  kernels::ScaledBytes stored;
  if (mx) {
    const MxScale how = recipe_.scaling == Scaling::mx_floor ? MxScale::floor : MxScale::rceil;
    stored = kernels::to_mx_bytes(matrix, type, how, block, order);
  } else {
    const bool powers = recipe_.scaling == Scaling::powers_of_two;
    if (!largest.defined()) {
      stored = kernels::to_scaled_bytes(matrix, type, powers, block, order);
    } else {
      const Tensor scales = kernels::scales_for(largest, type, powers);
      stored = kernels::to_bytes(matrix, scales, type, block, order);
    }
  }
  if (device_multiplies(matrix)) return {{}, stored};
  return {kernels::from_bytes(stored, type_of_values(matrix)), {}};
}

bool ProductRounding::device_multiplies(const Tensor& matrix) const {
  return !matrix.is_cpu() && !how_.emulated &&
         plan::has_8bit_products(how_.recipe, dtype_of(matrix.scalar_type()));
}

/// In one message.
void ProductRounding::take_largest_of_ranks(Tensors& largest) const {
  Tensors shared;
  for (const Tensor& one : largest)
    if (one.defined()) shared.push_back(one.flatten());
  if (shared.empty()) return;
  const Tensor all = at::cat(shared);
  how_.tp->all_reduce(buffer_of(all), comm::Op::max).wait();
  std::int64_t begin = 0;
  for (Tensor& one : largest) {
    if (!one.defined()) continue;
    one = all.narrow(0, begin, one.numel()).view(one.sizes());
    begin += one.numel();
  }
}

/// bfloat16 holds 8-bit values that are scaled by powers of two, and multiplies them faster.
at::ScalarType ProductRounding::type_of_values(const Tensor& matrix) const {
  const at::ScalarType type = matrix.scalar_type();
  if (type != at::kBFloat16) return type;
  return recipe_.scaling != Scaling::exact && !kernels::widens(matrix) ? type : at::kFloat;
}

}  // namespace tessera::parallel
