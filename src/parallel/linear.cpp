// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/linear.hpp"

#include <algorithm>

#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/rounded_experts.hpp"
#include "tessera/parallel/rounded_linear.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;
using Tensors = std::vector<Tensor>;

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

/// Of x and weights, as one product with all of them. The queue outlives every graph.
class Linears final : public kernels::Operation {
 public:
  explicit Linears(WeightGradients& gradients) : gradients_(gradients) {}

  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs.begin(), inputs.end()});
    const auto weights = inputs.subspan(1);
    for (const Tensor& weight : weights) rows_.push_back(weight.size(0));
    return kernels::columns_of(kernels::linear(inputs[0], kernels::joined_rows(weights)), rows_);
  }

  Tensors backward(Kept& kept, Tensors out) override {
    const Tensors saved = kept.saved();
    const Tensor& x = saved[0];
    const auto weights = std::span(saved).subspan(1);
    const Tensor g = kernels::joined_columns(out);
    Tensors result(saved.size());
    if (kept.needs_gradient(0)) result[0] = kernels::mm(g, kernels::joined_rows(weights));
    Tensors wanted(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (kept.needs_gradient(i + 1)) wanted[i] = weights[i];
    std::ranges::move(of_weights(std::move(wanted), g, x.detach()), result.begin() + 1);
    return result;
  }

 private:
  /// Now, or nothing yet if they come later. `wanted`: weights, undefined where none is needed.
  Tensors of_weights(Tensors wanted, const Tensor& g, const Tensor& x) {
    if (std::ranges::none_of(wanted, &Tensor::defined)) return wanted;
    const auto compute = [g, x, rows = rows_] {
      return kernels::mm(g.t(), x).split_with_sizes(rows, 0);
    };
    if (!std::ranges::all_of(wanted, [this](const Tensor& weight) {
          return !weight.defined() || gradients_.puts_off(weight);
        }))
      return compute();
    Tensors none(wanted.size());
    gradients_.defer([compute, leaves = std::move(wanted)]() mutable {
      const Tensors made = compute();
      for (std::size_t i = 0; i < leaves.size(); ++i)
        if (leaves[i].defined()) add_gradient(leaves[i], made[i]);
    });
    return none;
  }

  WeightGradients& gradients_;
  std::vector<std::int64_t> rows_;  ///< of each weight
};

/// Of x, weight and groups.
class ExpertLinear final : public kernels::Operation {
 public:
  explicit ExpertLinear(WeightGradients& gradients) : gradients_(gradients) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1], inputs[2]});
    return {kernels::grouped_mm(inputs[0], inputs[1], inputs[2])};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> out) override {
    const auto saved = kept.saved();
    const Tensor &x = saved[0], &weight = saved[1], &groups = saved[2], g = out[0].contiguous();
    Tensor of_x, of_weight;
    if (kept.needs_gradient(0)) of_x = kernels::grouped_mm(g, weight.transpose(1, 2), groups);
    if (kept.needs_gradient(1))
      of_weight = gradients_.now_or_later(weight, [g, x = x.detach(), groups] {
        return kernels::grouped_weight_gradient(g, x, groups);
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

Tensors linears(const Tensor& x, std::vector<Tensor> weights, WeightGradients& gradients) {
  weights.insert(weights.begin(), x);
  return kernels::apply_all(std::make_unique<Linears>(gradients), std::move(weights));
}

Tensor expert_linear(const Tensor& x, const Tensor& weight, const Tensor& groups,
                     WeightGradients& gradients) {
  return kernels::apply(ExpertLinear(gradients), {x, weight, groups});
}

/// Weights of one call have one input, which is rounded once for those that are.
std::vector<Tensor> LinearOperations::products(const Tensor& x,
                                               std::span<const model::Weight> weights) const {
  std::vector<Tensor> results(weights.size()), plain;
  std::vector<RoundedWeight> rounded;
  std::vector<std::size_t> places, rounded_places;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (const LinearRounding* how = rounded_.find(weights[i].value)) {
      rounded.push_back({weights[i].value, *how});
      rounded_places.push_back(i);
    } else {
      plain.push_back(weights[i].value);
      places.push_back(i);
    }
  }
  const auto put = [&](const std::vector<std::size_t>& at, Tensors made) {
    for (std::size_t i = 0; i < at.size(); ++i) results[at[i]] = std::move(made[i]);
  };
  if (plain.size() == 1) results[places[0]] = linear(x, plain[0], gradients_);
  if (plain.size() > 1) put(places, linears(x, std::move(plain), gradients_));
  if (!rounded.empty()) put(rounded_places, rounded_linear(x, rounded, gradients_));
  return results;
}

std::function<Tensor()> LinearOperations::product_again(const Tensor& x,
                                                        const model::Weight& weight) const {
  const LinearRounding* how = rounded_.find(weight.value);
  if (!how) return inner_.product_again(x, weight);
  return [x, weight = weight.value, how = *how] { return rounded_product(x, weight, how); };
}

Tensor LinearOperations::expert_product(const Tensor& x, const model::Weight& weight,
                                        const Tensor& groups) const {
  const LinearRounding* how = rounded_.find(weight.value);
  return how ? rounded_expert_linear(x, weight.value, groups, *how, gradients_)
             : expert_linear(x, weight.value, groups, gradients_);
}

std::function<Tensor()> LinearOperations::expert_product_again(const Tensor& x,
                                                               const model::Weight& weight,
                                                               const Tensor& groups) const {
  const LinearRounding* how = rounded_.find(weight.value);
  if (!how) return inner_.expert_product_again(x, weight, groups);
  return [x, weight = weight.value, groups, how = *how] {
    return rounded_expert_product(x, weight, groups, how);
  };
}

}  // namespace tessera::parallel
