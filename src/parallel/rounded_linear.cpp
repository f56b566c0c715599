// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/rounded_linear.hpp"

#include <array>

#include "tessera/base/error.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/scaled_bytes.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;
using kernels::ScaleBlock;
using Tensors = std::vector<Tensor>;

/// Which elements of an operand share a scale.
enum class Share : std::uint8_t {
  nothing,  ///< it is not rounded
  all,
  line,  ///< those that one element of the product sums over
};

/// Of the two operands of a product.
struct Shares {
  Share left, right;
};

/// torchao's recipes; inputs and weights are e4m3 in all of them.
struct Recipe {
  DType gradients;  ///< the type of outputs' gradients
  bool powers_of_two;
  Shares forward;    ///< x, weight
  Shares of_input;   ///< gradients, weight
  Shares of_weight;  ///< gradients, x
};

Recipe recipe_of(plan::LinearRecipe recipe) {
  using enum Share;
  switch (recipe) {
    case plan::LinearRecipe::tensorwise:
      return {DType::f8e5m2, false, {all, all}, {all, all}, {all, all}};
    case plan::LinearRecipe::rowwise:
      return {DType::f8e4m3, true, {line, line}, {line, line}, {line, line}};
    case plan::LinearRecipe::rowwise_with_gw_hp:
      return {DType::f8e4m3, true, {line, line}, {line, all}, {nothing, nothing}};
    case plan::LinearRecipe::none:
      break;
  }
  contract_violated("a recipe", __FILE__, __LINE__, "products of this layer are not rounded");
}

/// A matrix on its way into a product.
struct Operand {
  Tensor matrix;
  DType type;
  ScaleBlock block;
  bool across;  ///< other ranks of tp have elements of the same blocks
};

class Rounding {
 public:
  explicit Rounding(const LinearRounding& how) : how_(how), recipe_(recipe_of(how.recipe)) {}

  bool rounds_weight_gradients() const { return recipe_.of_weight.left != Share::nothing; }

  /// x and weights, for x times their transposes.
  Tensors forward(const Tensor& x, std::span<const Tensor> weights) const {
    std::vector<Operand> operands{operand_x(x, recipe_.forward.left, 1)};
    for (const Tensor& weight : weights)
      operands.push_back(operand_weight(weight, recipe_.forward.right, 1));
    return rounded(operands);
  }
  /// g and weight, for their product.
  Tensors of_input(const Tensor& g, const Tensor& weight) const {
    return rounded(std::array{operand_g(g, recipe_.of_input.left, 1),
                              operand_weight(weight, recipe_.of_input.right, 0)});
  }
  /// g and x, for the transpose of g times x.
  Tensors of_weight(const Tensor& g, const Tensor& x) const {
    return rounded(std::array{operand_g(g, recipe_.of_weight.left, 0),
                              operand_x(x, recipe_.of_weight.right, 0)});
  }

 private:
  static constexpr int kUncut = -1;

  Operand operand_x(const Tensor& x, Share share, int along) const {
    const int cut = how_.cut == LinearCut::inputs ? 1 : how_.cut == LinearCut::tokens ? 0 : kUncut;
    return operand(x, DType::f8e4m3, share, along, cut);
  }
  Operand operand_weight(const Tensor& weight, Share share, int along) const {
    const int cut = how_.cut == LinearCut::inputs ? 1 : how_.cut == LinearCut::outputs ? 0 : kUncut;
    return operand(weight, DType::f8e4m3, share, along, cut);
  }
  Operand operand_g(const Tensor& g, Share share, int along) const {
    const int cut = how_.cut == LinearCut::outputs ? 1 : how_.cut == LinearCut::tokens ? 0 : kUncut;
    return operand(g, recipe_.gradients, share, along, cut);
  }

  /// `along`: the dimension that the product sums over; `cut`: the one that tp cuts.
  static Operand operand(const Tensor& matrix, DType type, Share share, int along, int cut) {
    ScaleBlock block;
    if (share == Share::line) (along == 1 ? block.rows : block.columns) = 1;
    const std::int64_t extent = cut == 1 ? block.columns : block.rows;
    return {matrix, type, block, cut != kUncut && extent == ScaleBlock::whole};
  }

  /// What the matrices' bytes stand for.
  Tensors rounded(std::span<const Operand> operands) const {
    Tensors largest;
    for (const Operand& operand : operands)
      largest.push_back(kernels::largest_magnitudes(operand.matrix, operand.block));
    take_largest_of_ranks(operands, largest);
    Tensors values;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto& [matrix, type, block, across] = operands[i];
      const Tensor scales = kernels::scales_for(largest[i], type, recipe_.powers_of_two);
      values.push_back(kernels::from_bytes(kernels::to_bytes(matrix, scales, type, block),
                                           type_of_values(matrix)));
    }
    return values;
  }

  /// In one message.
  void take_largest_of_ranks(std::span<const Operand> operands, Tensors& largest) const {
    if (how_.tp->size() == 1) return;
    Tensors shared;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].across) shared.push_back(largest[i].flatten());
    if (shared.empty()) return;
    const Tensor all = at::cat(shared);
    how_.tp->all_reduce(buffer_of(all), comm::Op::max).wait();
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].across) continue;
      const std::int64_t count = largest[i].numel();
      largest[i] = all.narrow(0, begin, count).view(largest[i].sizes());
      begin += count;
    }
  }

  /// bfloat16 holds 8-bit values that are scaled by powers of two, and multiplies them faster.
  at::ScalarType type_of_values(const Tensor& matrix) const {
    const at::ScalarType type = matrix.scalar_type();
    if (type != at::kBFloat16) return type;
    return recipe_.powers_of_two && !kernels::widens(matrix) ? type : at::kFloat;
  }

  const LinearRounding how_;
  const Recipe recipe_;
};

/// a times b in `type`, rounded once.
Tensor product(const Tensor& a, const Tensor& b, at::ScalarType type) {
  return kernels::mm(a, b).to(type);
}

Tensors forward_products(const Tensor& x, std::span<const Tensor> weights,
                         const LinearRounding& how) {
  const Tensors values = Rounding(how).forward(x, weights);
  Tensors results;
  for (std::size_t i = 1; i < values.size(); ++i)
    results.push_back(product(values[0], values[i].t(), x.scalar_type()));
  return results;
}

Tensor weight_gradient(const Tensor& g, const Tensor& x, const LinearRounding& how) {
  const Rounding rounding(how);
  if (!rounding.rounds_weight_gradients()) return kernels::mm(g.t(), x);
  const Tensors values = rounding.of_weight(g, x);
  return product(values[0].t(), values[1], x.scalar_type());
}

/// Of x and weights. Communicator and queue outlive every graph.
class RoundedLinear final : public kernels::Operation {
 public:
  RoundedLinear(const LinearRounding& how, WeightGradients& gradients)
      : how_(how), gradients_(gradients) {}

  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs.begin(), inputs.end()});
    return forward_products(inputs[0], inputs.subspan(1), how_);
  }

  Tensors backward(Kept& kept, Tensors out) override {
    const Tensors saved = kept.saved();
    const Tensor& x = saved[0];
    Tensors result{Tensor()};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Tensor& weight = saved[i + 1];
      if (kept.needs_gradient(0)) {
        const Tensors values = Rounding(how_).of_input(out[i], weight);
        const Tensor part = product(values[0], values[1], x.scalar_type());
        result[0] = result[0].defined() ? result[0] + part : part;
      }
      const auto compute = [g = out[i], x = x.detach(), how = how_] {
        return weight_gradient(g, x, how);
      };
      result.push_back(kept.needs_gradient(i + 1) ? gradients_.now_or_later(weight, compute)
                                                  : Tensor());
    }
    return result;
  }

 private:
  const LinearRounding how_;
  WeightGradients& gradients_;
};

LinearCut cut_of(model::Placement placement) {
  using enum model::Placement;
  if (placement == column || placement == vocabulary) return LinearCut::outputs;
  return placement == row ? LinearCut::inputs : LinearCut::tokens;
}

}  // namespace

void RoundedWeights::add(const std::vector<ShardedParam>& params) {
  for (const ShardedParam& param : params)
    if (plan_.rounds(*param.spec))
      roundings_[param.leaf.unsafeGetTensorImpl()] = {plan_.recipe, cut_of(param.spec->placement),
                                                      tp_};
}

const LinearRounding* RoundedWeights::find(const Tensor& weight) const {
  const auto found = roundings_.find(weight.unsafeGetTensorImpl());
  return found == roundings_.end() ? nullptr : &found->second;
}

Tensors rounded_linear(const Tensor& x, Tensors weights, const LinearRounding& how,
                       WeightGradients& gradients) {
  weights.insert(weights.begin(), x);
  return kernels::apply_all(std::make_unique<RoundedLinear>(how, gradients), std::move(weights));
}

Tensor rounded_product(const Tensor& x, const Tensor& weight, const LinearRounding& how) {
  const at::NoGradGuard no_grad;
  return forward_products(x, std::span(&weight, 1), how)[0];
}

}  // namespace tessera::parallel
