// SPDX-License-Identifier: Apache-2.0
// What the operands of a linear layer's three products are rounded to.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <optional>
#include <span>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/kernels/scaled_bytes.hpp"
#include "tessera/parallel/rounded_linear.hpp"

namespace tessera::parallel {

/// Which elements of an operand share a scale.
enum class ScaleShare : std::uint8_t {
  nothing,  ///< it is not rounded
  all,
  line,   ///< those that one element of the product sums over
  block,  ///< 32 of these
  tile,   ///< 128 of these, or those that are left at the end
  square  ///< 128 of these for 128 of the product's elements
};

/// Of the two operands of a product.
struct ScaleShares {
  ScaleShare left, right;
};

/// How a scale follows from the largest magnitude.
enum class Scaling : std::uint8_t { exact, powers_of_two, mx_floor, mx_rceil };

/// torchao's recipes; inputs and weights are e4m3 in all of them.
struct Recipe {
  DType gradients;  ///< the type of outputs' gradients
  Scaling scaling;
  ScaleShares forward;    ///< x, weight
  ScaleShares of_input;   ///< gradients, weight
  ScaleShares of_weight;  ///< gradients, x
};

Recipe recipe_of(plan::LinearRecipe recipe);

/// An operand of a product: what its bytes stand for, or the bytes where the device multiplies
/// them.
struct RoundedOperand {
  at::Tensor value;
  kernels::ScaledBytes bytes;
};

/// Gradients of outputs as the products of both kinds need them.
struct RoundedGradient {
  RoundedOperand of_input, of_weight;
};

RoundedOperand transposed(const RoundedOperand& operand);

/// Rounds the operands of products. Collective over tp where a scale is other ranks' too.
class ProductRounding {
 public:
  explicit ProductRounding(const LinearRounding& how) : how_(how), recipe_(recipe_of(how.recipe)) {}

  bool rounds_weight_gradients() const { return recipe_.of_weight.left != ScaleShare::nothing; }
  /// Of the values of an emulated product with this matrix.
  at::ScalarType type_of_values(const at::Tensor& matrix) const;

  /// x and weights, for x times their transposes.
  std::vector<RoundedOperand> forward(const at::Tensor& x,
                                      const std::vector<at::Tensor>& weights) const;
  /// The weight, where it was gathered in bytes, for any product.
  RoundedOperand gathered(const at::Tensor& weight) const;
  /// g and weight, for their product.
  std::vector<RoundedOperand> of_input(const at::Tensor& g, const at::Tensor& weight) const;
  /// The weight alone, for a g that is rounded.
  RoundedOperand weight_of_input(const at::Tensor& weight) const;
  /// g for both of its products at once, where a device does that with fewer passes over it.
  std::optional<RoundedGradient> g_of_both(const at::Tensor& g) const;
  /// g and x, each by itself, for the transpose of g times x.
  RoundedOperand g_of_weight(const at::Tensor& g) const;
  RoundedOperand x_of_weight(const at::Tensor& x) const;

 private:
  struct Operand;

  int cut_of(LinearCut rows, LinearCut columns) const;
  Operand operand_x(const at::Tensor& x, ScaleShare share, int along) const;
  Operand operand_weight(const at::Tensor& weight, ScaleShare share, int along) const;
  Operand operand_g(const at::Tensor& g, ScaleShare share, int along) const;
  std::vector<RoundedOperand> rounded(std::span<const Operand> operands) const;
  /// `largest` is undefined unless ranks share blocks.
  RoundedOperand rounded_by(const Operand& operand, const at::Tensor& largest) const;
  bool device_multiplies(const at::Tensor& matrix) const;
  void take_largest_of_ranks(std::vector<at::Tensor>& largest) const;

  const LinearRounding how_;
  const Recipe recipe_;
};

}  // namespace tessera::parallel
