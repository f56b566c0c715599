#include "tessera/parallel/linear.hpp"

#include "tessera/kernels/grouped_mm.hpp"

namespace tessera::parallel {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// Queues outlive every graph, so the graph carries their address.
void remember(AutogradContext* context, WeightGradients* gradients) {
  context->saved_data["gradients"] = reinterpret_cast<std::int64_t>(gradients);
}
WeightGradients& recall(AutogradContext* context) {
  return *reinterpret_cast<WeightGradients*>(context->saved_data["gradients"].toInt());
}

/// What autograd is to add to `weight`'s gradient: compute(), or nothing yet if it is to come later.
template <class Compute>
Tensor now_or_later(WeightGradients& gradients, const Tensor& weight, Compute compute) {
  if (!gradients.puts_off(weight)) return compute();
  gradients.defer([compute, leaf = weight]() mutable { add_gradient(leaf, compute()); });
  return {};
}

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, WeightGradients* gradients) {
    context->save_for_backward({x, weight});
    remember(context, gradients);
    return torch::linear(x, weight);
  }

  static tensor_list backward(AutogradContext* context, tensor_list out) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &g = out[0];
    Tensor of_x, of_weight;
    if (context->needs_input_grad(0)) of_x = g.mm(weight);
    if (context->needs_input_grad(1))
      of_weight = now_or_later(recall(context), weight, [g, x = x.detach()] { return g.t().mm(x); });
    return {of_x, of_weight, Tensor()};
  }
};

struct ExpertLinear : torch::autograd::Function<ExpertLinear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& counts,
                        WeightGradients* gradients) {
    context->save_for_backward({x, weight, counts});
    remember(context, gradients);
    return kernels::grouped_mm(x, weight, counts);
  }

  static tensor_list backward(AutogradContext* context, tensor_list out) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &counts = saved[2], g = out[0].contiguous();
    Tensor of_x, of_weight;
    if (context->needs_input_grad(0)) of_x = kernels::grouped_mm(g, weight.transpose(1, 2), counts);
    if (context->needs_input_grad(1))
      of_weight = now_or_later(recall(context), weight,
                               [g, x = x.detach(), counts] { return kernels::grouped_weight_gradient(g, x, counts); });
    return {of_x, of_weight, Tensor(), Tensor()};
  }
};

}  // namespace

void add_gradient(Tensor& leaf, const Tensor& gradient) {
  Tensor& sum = leaf.mutable_grad();
  sum = sum.defined() ? sum + gradient : gradient;
}

Tensor linear(const Tensor& x, const Tensor& weight, WeightGradients& gradients) {
  return Linear::apply(x, weight, &gradients);
}

Tensor expert_linear(const Tensor& x, const Tensor& weight, const Tensor& counts, WeightGradients& gradients) {
  return ExpertLinear::apply(x, weight, counts, &gradients);
}

std::vector<Tensor> LinearOperations::products(const Tensor& x, std::span<const model::Weight> weights) const {
  std::vector<Tensor> result;
  for (const model::Weight& weight : weights) result.push_back(linear(x, weight.value, gradients_));
  return result;
}

}  // namespace tessera::parallel
