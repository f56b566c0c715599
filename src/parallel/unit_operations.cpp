// SPDX-License-Identifier: Apache-2.0
#include "unit_operations.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::parallel {

using at::Tensor;

bool UnitOperations::take_reduced() {
  reduce_.reset();
  return std::exchange(reduced_, false);
}

void UnitOperations::expect_done(const std::string& cell) const {
  TESSERA_EXPECT(!gather_, "{} has no tokens to gather in its product", cell);
}

bool UnitOperations::remade(const model::Weight& weight) const {
  return std::ranges::find(remade_, weight.value.unsafeGetTensorImpl()) != remade_.end();
}

std::vector<Tensor> UnitOperations::products(const Tensor& x,
                                             std::span<const model::Weight> weights) const {
  if (const auto chunks = std::exchange(gather_, std::nullopt))
    return gathered_products(x, weights, *chunks);
  if (const auto chunks = std::exchange(reduce_, std::nullopt)) {
    TESSERA_EXPECT(weights.size() == 1, "{} products at once cannot be summed over ranks",
                   weights.size());
    reduced_ = true;
    return {reduced_product(x, weights[0], *chunks)};
  }
  std::vector<Tensor> results = inner_.products(x, weights);
  if (!remakes || std::ranges::none_of(weights, [this](const auto& each) { return remade(each); }))
    return results;
  // Memory is given back as a whole, so each has its own.
  for (Tensor& result : results) result = result.contiguous();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (remade(weights[i])) remakable(results[i], inner_.product_again(x, weights[i]));
  return results;
}

Tensor UnitOperations::expert_product(const Tensor& x, const model::Weight& weight,
                                      const Tensor& groups) const {
  const Tensor result = inner_.expert_product(x, weight, groups);
  if (remade(weight)) remakable(result, inner_.expert_product_again(x, weight, groups));
  return result;
}

void UnitOperations::remakable(const Tensor& made, std::function<Tensor()> remake) const {
  if (remakes) remakes->add(made, std::move(remake));
}

}  // namespace tessera::parallel
