#include "unit_operations.hpp"

#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::parallel {

using torch::Tensor;

bool UnitOperations::take_reduced() {
  reduce_.reset();
  return std::exchange(reduced_, false);
}

void UnitOperations::expect_done(const std::string& cell) const {
  TESSERA_EXPECT(!gather_, "{} was to gather its tokens in a product, and has none", cell);
}

std::vector<Tensor> UnitOperations::products(const Tensor& x, std::span<const model::Weight> weights) const {
  if (const auto chunks = std::exchange(gather_, std::nullopt)) return gathered_products(x, weights, *chunks);
  if (const auto chunks = std::exchange(reduce_, std::nullopt)) {
    TESSERA_EXPECT(weights.size() == 1, "{} products at once cannot be summed over ranks", weights.size());
    reduced_ = true;
    return {reduced_product(x, weights[0], *chunks)};
  }
  return inner_.products(x, weights);
}

void UnitOperations::remakable(const Tensor& made, std::function<Tensor()> remake) const {
  if (remakes) remakes->add(made, std::move(remake));
}

}  // namespace tessera::parallel
