// SPDX-License-Identifier: Apache-2.0
#include "row_order.hpp"

#include "tessera/kernels/operation.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using kernels::Kept;

/// Of tokens and order.
struct RowsOfChoices final : kernels::Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &rows = inputs[0], &order = inputs[1];
    kept.save({order});
    tokens = rows.size(0);
    return {rows.index_select(0, order.div(order.size(0) / tokens, "floor"))};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const Tensor order = kept.saved()[0];
    const std::int64_t choices = order.size(0) / tokens;
    const Tensor in_place = gradients[0].index_select(0, undoing(order));
    return {in_place.view({tokens, choices, -1}).sum(1), {}};
  }
  std::int64_t tokens = 0;
};

/// Of rows and order.
struct Reordered final : kernels::Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[1]});
    return {inputs[0].index_select(0, inputs[1])};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    return {gradients[0].index_select(0, undoing(kept.saved()[0])), {}};
  }
};

/// Of scores and choices: a bmm in the type of the scores. What it reads of the choices is made
/// again for backward, since it is twice as large.
struct WeightedSum final : kernels::Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &scores = inputs[0], &choices = inputs[1];
    kept.save({scores, choices});
    return {at::bmm(scores.unsqueeze(1), choices.to(scores.scalar_type()))
                .squeeze(1)
                .to(choices.scalar_type())};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor &scores = saved[0], &choices = saved[1],
                 g = gradients[0].to(scores.scalar_type()).unsqueeze(1);
    Tensor of_scores, of_choices;
    if (kept.needs_gradient(0))
      of_scores = at::bmm(g, choices.to(scores.scalar_type()).transpose(1, 2)).squeeze(1);
    if (kept.needs_gradient(1))
      of_choices = at::bmm(scores.unsqueeze(2), g).to(choices.scalar_type());
    return {of_scores, of_choices};
  }
};

}  // namespace

Tensor undoing(const Tensor& order) {
  Tensor back = at::empty_like(order);
  back.scatter_(0, order, at::arange(order.size(0), order.options()));
  return back;
}

Tensor rows_of_choices(const Tensor& tokens, const Tensor& order) {
  return kernels::apply(RowsOfChoices(), {tokens, order});
}

Tensor reordered(const Tensor& rows, const Tensor& order) {
  return kernels::apply(Reordered(), {rows, order});
}

Tensor weighted_sum(const Tensor& choices, const Tensor& scores) {
  return kernels::apply(WeightedSum(), {scores, choices});
}

Tensor expert_order(const Tensor& received, const Tensor& rows) {
  const Tensor counts = received.flatten().to(rows.device(), /*non_blocking=*/true);
  const Tensor experts = at::arange(received.size(1), counts.options()).repeat({received.size(0)});
  return experts.repeat_interleave(counts, 0, rows.size(0)).argsort(/*stable=*/true, 0, false);
}

}  // namespace tessera::model
