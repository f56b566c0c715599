#include "tessera/parallel/linear.hpp"

namespace tessera::parallel {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, WeightGradients* gradients) {
    context->save_for_backward({x, weight});
    context->saved_data["gradients"] = reinterpret_cast<std::int64_t>(gradients);
    return torch::linear(x, weight);
  }

  static tensor_list backward(AutogradContext* context, tensor_list out) {
    auto& gradients = *reinterpret_cast<WeightGradients*>(context->saved_data["gradients"].toInt());
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &g = out[0];
    const Tensor of_x = context->needs_input_grad(0) ? g.mm(weight) : Tensor();
    if (!context->needs_input_grad(1)) return {of_x, Tensor(), Tensor()};
    const auto of_weight = [g, x = x.detach()] { return g.t().mm(x); };
    if (!gradients.puts_off()) return {of_x, of_weight(), Tensor()};
    gradients.defer([of_weight, leaf = weight]() mutable { add_gradient(leaf, of_weight()); });
    return {of_x, Tensor(), Tensor()};
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

std::vector<Tensor> LinearOperations::products(const Tensor& x, std::span<const model::Weight> weights) const {
  std::vector<Tensor> result;
  for (const model::Weight& weight : weights) result.push_back(linear(x, weight.value, gradients_));
  return result;
}

}  // namespace tessera::parallel
