// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/rounded_linear.hpp"

#include <optional>

#include "product_rounding.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;
using Tensors = std::vector<Tensor>;

/// How a device sums products of bytes. torchao's choice: only outputs in fewer bits than float32.
enum class Sum : std::uint8_t { fast, exact };

/// a times b in `type`, rounded once.
Tensor product(const RoundedOperand& a, const RoundedOperand& b, at::ScalarType type, Sum sum) {
  if (a.value.defined()) return kernels::mm(a.value, b.value).to(type);
  return kernels::scaled_mm(a.bytes, b.bytes, sum == Sum::fast);
}

Tensors forward_products(const Tensor& x, const Tensors& weights,
                         const std::vector<LinearRounding>& how) {
  std::vector<RoundedOperand> operands;
  if (how.front().gathered) {
    operands = ProductRounding(how.front()).forward(x, {});
    for (std::size_t i = 0; i < weights.size(); ++i)
      operands.push_back(ProductRounding(how[i]).gathered(weights[i]));
  } else {
    operands = ProductRounding(how.front()).forward(x, weights);
  }
  Tensors results;
  for (std::size_t i = 1; i < operands.size(); ++i)
    results.push_back(product(operands[0], transposed(operands[i]), x.scalar_type(), Sum::fast));
  return results;
}

/// `rounded`: g, where both of its products have it already.
Tensor input_gradient(const Tensor& g, const std::optional<RoundedGradient>& rounded,
                      const Tensor& weight, const ProductRounding& rounding) {
  const auto operands = rounded ? std::vector{rounded->of_input, rounding.weight_of_input(weight)}
                                : rounding.of_input(g, weight);
  return product(operands[0], operands[1], g.scalar_type(), Sum::exact);
}

/// x as the gradients of weights need it, rounded once for `users` of them.
class SharedInput {
 public:
  SharedInput(Tensor x, const LinearRounding& how, int users)
      : x_(std::move(x)), rounding_(how), users_(users) {}

  /// Of the weight whose outputs have the gradients g, or what is rounded of them.
  Tensor weight_gradient(const Tensor& g, const std::optional<RoundedOperand>& rounded) {
    if (!rounding_.rounds_weight_gradients()) return kernels::mm(g.t(), x_);
    const RoundedOperand rounded_g = rounded ? *rounded : rounding_.g_of_weight(g);
    if (!rounded_) rounded_ = rounding_.x_of_weight(x_);
    const RoundedOperand x = *rounded_;
    if (--users_ == 0) rounded_.reset();
    return product(transposed(rounded_g), x, x_.scalar_type(), Sum::exact);
  }

 private:
  const Tensor x_;
  const ProductRounding rounding_;
  int users_;
  std::optional<RoundedOperand> rounded_;  ///< from the first user to the last
};

/// What is rounded is the whole gradient, which the first of the copies uses; the others add zeros.
Tensor of_all_copies(const Tensor& g, const LinearRounding& how) {
  if (!how.copies) return g;
  Tensor sum = all_reduced(g, *how.copies);
  return how.copies->rank() == 0 ? sum : sum.zero_();
}

/// Of x and weights. Communicators and queue outlive every graph.
class RoundedLinear final : public kernels::Operation {
 public:
  RoundedLinear(std::vector<LinearRounding> how, WeightGradients& gradients)
      : how_(std::move(how)), gradients_(gradients) {}

  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs.begin(), inputs.end()});
    return forward_products(inputs[0], {inputs.begin() + 1, inputs.end()}, how_);
  }

  Tensors backward(Kept& kept, Tensors out) override {
    const Tensors saved = kept.saved();
    const Tensor& x = saved[0];
    Tensors result{Tensor()};
    int users = 0;
    for (std::size_t i = 0; i < out.size(); ++i) users += kept.needs_gradient(i + 1);
    const auto input = std::make_shared<SharedInput>(x.detach(), how_.front(), users);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Tensor &weight = saved[i + 1], g = of_all_copies(out[i], how_[i]);
      const bool of_input = kept.needs_gradient(0), of_weight = kept.needs_gradient(i + 1);
      const ProductRounding rounding(how_[i]);
      std::optional<RoundedGradient> both;
      if (of_input && of_weight) both = rounding.g_of_both(g);
      if (of_input) {
        const Tensor part = input_gradient(g, both, weight, rounding);
        result[0] = result[0].defined() ? result[0] + part : part;
      }
      std::optional<RoundedOperand> rounded;
      if (both) rounded = both->of_weight;
      // What is put off keeps the bytes, where they are there, and not g.
      const auto compute = [g = rounded ? Tensor() : g, rounded, input] {
        return input->weight_gradient(g, rounded);
      };
      result.push_back(of_weight ? gradients_.now_or_later(weight, compute) : Tensor());
    }
    return result;
  }

 private:
  const std::vector<LinearRounding> how_;
  WeightGradients& gradients_;
};

LinearCut cut_of(model::Placement placement) {
  using enum model::Placement;
  if (placement == column || placement == vocabulary || placement == expert_column)
    return LinearCut::outputs;
  return placement == row || placement == expert_row ? LinearCut::inputs : LinearCut::tokens;
}

}  // namespace

void RoundedWeights::add(const std::vector<ShardedParam>& params) {
  comm::Communicator& tp = mesh_->along(mesh::Axis::tp);
  for (const ShardedParam& param : params) {
    if (plan_.experts.rounds(*param.spec)) add_experts(param);
    if (!plan_.rounds(*param.spec)) continue;
    const LinearCut cut = cut_of(param.spec->placement);
    const bool copied = cut == LinearCut::outputs && param.place.tp_copies > 1;
    comm::Communicator* copies = copied ? &mesh_->neighbours(tp, param.place.tp_copies) : nullptr;
    LinearRounding& how = roundings_[param.leaf.unsafeGetTensorImpl()];
    how = {plan_.recipe, cut, &tp, copies, plan_.emulated, std::nullopt};
    if (param.in_bytes) how.gathered = param.bytes;
  }
}

/// Each rank has whole experts, unless tp cuts them.
void RoundedWeights::add_experts(const ShardedParam& param) {
  const bool cut = mesh_->layout().experts_cut_by_tp();
  LinearRounding& how = roundings_[param.leaf.unsafeGetTensorImpl()];
  how.recipe = plan_.experts.recipe;
  how.cut = cut ? cut_of(param.spec->placement) : LinearCut::nothing;
  how.tp = &mesh_->along(mesh::Axis::tp);
  how.emulated = true;
}

const LinearRounding* RoundedWeights::find(const Tensor& weight) const {
  const auto found = roundings_.find(weight.unsafeGetTensorImpl());
  return found == roundings_.end() ? nullptr : &found->second;
}

Tensors rounded_linear(const Tensor& x, std::span<const RoundedWeight> weights,
                       WeightGradients& gradients) {
  Tensors inputs{x};
  std::vector<LinearRounding> how;
  for (const RoundedWeight& weight : weights) {
    inputs.push_back(weight.value);
    how.push_back(weight.how);
  }
  return kernels::apply_all(std::make_unique<RoundedLinear>(std::move(how), gradients),
                            std::move(inputs));
}

Tensor rounded_product(const Tensor& x, const Tensor& weight, const LinearRounding& how) {
  const at::NoGradGuard no_grad;
  return forward_products(x, {weight}, {how})[0];
}

}  // namespace tessera::parallel
