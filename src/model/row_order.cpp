// SPDX-License-Identifier: Apache-2.0
#include "row_order.hpp"

#include "tessera/kernels/choices.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using kernels::Kept;

/// Of tokens, order and places.
struct RowsOfChoices final : kernels::Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &rows = inputs[0], &order = inputs[1], &places = inputs[2];
    kept.save({places});
    return {rows.index_select(0, order.div(places.size(1), "floor"))};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    return {kernels::sum_of_choices(gradients[0], kept.saved()[0], {}), {}, {}};
  }
};

/// Of rows and order.
struct Reordered final : kernels::Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[1]});
    return {inputs[0].index_select(0, inputs[1])};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    return {gradients[0].index_select(0, kernels::undoing(kept.saved()[0])), {}};
  }
};

}  // namespace

Tensor rows_of_choices(const Tensor& tokens, const Tensor& order, const Tensor& places) {
  return kernels::apply(RowsOfChoices(), {tokens, order, places});
}

Tensor reordered(const Tensor& rows, const Tensor& order) {
  return kernels::apply(Reordered(), {rows, order});
}

Tensor expert_order(const Tensor& received, const Tensor& rows) {
  const Tensor counts = received.flatten().to(rows.device(), /*non_blocking=*/true);
  const Tensor experts = at::arange(received.size(1), counts.options()).repeat({received.size(0)});
  return experts.repeat_interleave(counts, 0, rows.size(0)).argsort(/*stable=*/true, 0, false);
}

}  // namespace tessera::model
