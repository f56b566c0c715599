#include "tessera/model/operations.hpp"

namespace tessera::model {

using torch::Tensor;

std::vector<Tensor> Operations::products(const Tensor& x, std::span<const Weight> weights) const {
  std::vector<Tensor> result;
  for (const Weight& weight : weights) result.push_back(torch::linear(x, weight.value));
  return result;
}

Tensor Operations::attention(const Attention& input) const {
  const bool causal = input.q.size(1) > 1, grouped = input.q.size(2) != input.k.size(2);
  const auto scale = input.scale > 0 ? std::optional<double>(input.scale) : std::nullopt;
  return at::scaled_dot_product_attention(input.q.transpose(1, 2), input.k.transpose(1, 2), input.v.transpose(1, 2), {},
                                          0.0, causal, scale, grouped)
      .transpose(1, 2);
}

void Operations::remakable(const Tensor&, std::function<Tensor()>) const {}

const Operations& plain_operations() {
  static const Operations plain;
  return plain;
}

}  // namespace tessera::model
