// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/linear.hpp"

#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/rounded_linear.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;

/// Of x and weight. The queue outlives every graph.
class Linear final : public kernels::Operation {
 public:
  explicit Linear(WeightGradients& gradients) : gradients_(gradients) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1]});
    return {kernels::linear(inputs[0], inputs[1])};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> out) override {
    const auto saved = kept.saved();
    const Tensor &x = saved[0], &weight = saved[1], &g = out[0];
    Tensor of_x, of_weight;
    if (kept.needs_gradient(0)) of_x = kernels::mm(g, weight);
    if (kept.needs_gradient(1))
      of_weight =
          gradients_.now_or_later(weight, [g, x = x.detach()] { return kernels::mm(g.t(), x); });
    return {of_x, of_weight};
  }

 private:
  WeightGradients& gradients_;
};

/// Of x, weight and counts.
class ExpertLinear final : public kernels::Operation {
 public:
  explicit ExpertLinear(WeightGradients& gradients) : gradients_(gradients) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1], inputs[2]});
    return {kernels::grouped_mm(inputs[0], inputs[1], inputs[2])};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> out) override {
    const auto saved = kept.saved();
    const Tensor &x = saved[0], &weight = saved[1], &counts = saved[2], g = out[0].contiguous();
    Tensor of_x, of_weight;
    if (kept.needs_gradient(0)) of_x = kernels::grouped_mm(g, weight.transpose(1, 2), counts);
    if (kept.needs_gradient(1))
      of_weight = gradients_.now_or_later(weight, [g, x = x.detach(), counts] {
        return kernels::grouped_weight_gradient(g, x, counts);
      });
    return {of_x, of_weight, {}};
  }

 private:
  WeightGradients& gradients_;
};

}  // namespace

void add_gradient(Tensor& leaf, const Tensor& gradient) {
  Tensor& sum = leaf.mutable_grad();
  sum = sum.defined() ? sum + gradient : gradient;
}

Tensor linear(const Tensor& x, const Tensor& weight, WeightGradients& gradients) {
  return kernels::apply(Linear(gradients), {x, weight});
}

Tensor expert_linear(const Tensor& x, const Tensor& weight, const Tensor& counts,
                     WeightGradients& gradients) {
  return kernels::apply(ExpertLinear(gradients), {x, weight, counts});
}

/// Weights of one call have one input, which is rounded once for those that are.
std::vector<Tensor> LinearOperations::products(const Tensor& x,
                                               std::span<const model::Weight> weights) const {
  std::vector<Tensor> results(weights.size());
  std::vector<RoundedWeight> together;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (const LinearRounding* how = rounded_.find(weights[i].value)) {
      together.push_back({weights[i].value, *how});
      places.push_back(i);
    } else {
      results[i] = linear(x, weights[i].value, gradients_);
    }
  }
  if (together.empty()) return results;
  const std::vector<Tensor> made = rounded_linear(x, together, gradients_);
  for (std::size_t i = 0; i < made.size(); ++i) results[places[i]] = made[i];
  return results;
}

std::function<Tensor()> LinearOperations::product_again(const Tensor& x,
                                                        const model::Weight& weight) const {
  const LinearRounding* how = rounded_.find(weight.value);
  if (!how) return inner_.product_again(x, weight);
  return [x, weight = weight.value, how = *how] { return rounded_product(x, weight, how); };
}

}  // namespace tessera::parallel
