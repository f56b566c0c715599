#include "row_order.hpp"

namespace tessera::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct RowsOfChoices : torch::autograd::Function<RowsOfChoices> {
  static Tensor forward(AutogradContext* context, const Tensor& tokens, const Tensor& order) {
    context->save_for_backward({order});
    context->saved_data["tokens"] = tokens.size(0);
    return tokens.index_select(0, order.div(order.size(0) / tokens.size(0), "floor"));
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Tensor order = context->get_saved_variables()[0];
    const std::int64_t tokens = context->saved_data["tokens"].toInt(), choices = order.size(0) / tokens;
    const Tensor in_place = gradients[0].index_select(0, undoing(order));
    return {in_place.view({tokens, choices, -1}).sum(1), {}};
  }
};

struct Reordered : torch::autograd::Function<Reordered> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& order) {
    context->save_for_backward({order});
    return rows.index_select(0, order);
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    return {gradients[0].index_select(0, undoing(context->get_saved_variables()[0])), {}};
  }
};

}  // namespace

Tensor undoing(const Tensor& order) {
  Tensor back = torch::empty_like(order);
  back.scatter_(0, order, torch::arange(order.size(0), order.options()));
  return back;
}

Tensor rows_of_choices(const Tensor& tokens, const Tensor& order) { return RowsOfChoices::apply(tokens, order); }

Tensor reordered(const Tensor& rows, const Tensor& order) { return Reordered::apply(rows, order); }

Tensor expert_order(const Tensor& received, torch::Device device) {
  const Tensor experts = torch::arange(received.size(1)).repeat({received.size(0)});
  const Tensor of_rows = experts.repeat_interleave(received.flatten());
  return of_rows.argsort(/*stable=*/true, 0, false).to(device);
}

}  // namespace tessera::model
