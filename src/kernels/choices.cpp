// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/choices.hpp"

#include <algorithm>

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Of rows, places and, where there are any, weights. Without weights, backward needs no rows.
class SumOfChoices final : public Operation {
 public:
  explicit SumOfChoices(Paired paired) : paired_(paired) {}
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const bool weighted = inputs.size() > 2;
    kept.save({inputs.begin() + (weighted ? 0 : 1), inputs.end()});
    rows_ = inputs[0].size(0);
    return {backend_of(inputs[0]).sum_of_choices(inputs[0], inputs[1],
                                                 weighted ? inputs[2] : Tensor(), paired_)};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const bool weighted = saved.size() > 1;
    const Tensor rows = weighted ? saved[0] : Tensor(), places = saved[weighted ? 1 : 0],
                 weights = weighted ? saved[2] : Tensor(), g = gradients[0].contiguous();
    const auto [of_rows, of_weights] =
        backend_of(g).sum_of_choices_backward(g, rows, rows_, places, weights, paired_);
    std::vector<Tensor> made{of_rows, {}};
    if (weighted) made.push_back(of_weights);
    return made;
  }

 private:
  Paired paired_;
  std::int64_t rows_ = 0;
};

/// Rows at `places` among `count`. Others are 0, unless there are as many places. Where rows did
/// not fit, choices share places. Values do not matter then: the step is computed again.
Tensor spread(const Tensor& rows, const Tensor& places, std::int64_t count, Paired paired) {
  if (paired != Paired::choices)  // those without a row: beyond the last one
    return at::zeros({count + 1, rows.size(1)}, rows.options())
        .index_copy_(0, places.where(places.ge(0), at::full({}, count, places.options())), rows)
        .narrow(0, 0, count);
  if (count > places.size(0))
    return at::zeros({count, rows.size(1)}, rows.options()).index_copy_(0, places, rows);
  const Tensor row = at::arange(count, places.options());
  return rows.index_select(0, at::zeros_like(places).scatter_(0, places, row));
}

/// [T, K, D]; zeros where there is no row.
Tensor rows_at(const Tensor& places, const Tensor& rows, Paired paired) {
  const bool all = paired == Paired::choices;
  const Tensor flat = all ? places.flatten() : places.flatten().clamp_min(0),
               found =
                   rows.index_select(0, flat).view({places.size(0), places.size(1), rows.size(1)});
  return all ? found : found.masked_fill(places.lt(0).unsqueeze(2), 0);
}

/// Of values and each row's group.
struct RowsOfGroups final : Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[1]});
    groups_ = inputs[0].size(0);
    return {inputs[0].index_select(0, inputs[1])};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const Tensor group_of = kept.saved()[0];
    const Tensor members = at::arange(groups_, group_of.options()).unsqueeze(1) == group_of;
    const Tensor rows = gradients[0].contiguous();
    const Tensor sums =
        at::zeros({groups_, rows.size(1)}, rows.options().dtype(accumulation_type(rows)));
    if (rows.size(0) > 0) kernels::mm_out(sums, members.to(rows.scalar_type()), rows);
    return {sums.to(rows.scalar_type()), {}};
  }

 private:
  std::int64_t groups_ = 0;
};

}  // namespace

namespace by_operators {

Tensor sum_of_choices(const Tensor& rows, const Tensor& places, const Tensor& weights,
                      Paired paired) {
  const Tensor choices = rows_at(places, rows, paired);
  if (!weights.defined()) return choices.sum(1);
  return at::bmm(weights.unsqueeze(1), choices.to(weights.scalar_type()))
      .squeeze(1)
      .to(rows.scalar_type());
}

std::pair<Tensor, Tensor> sum_of_choices_backward(const Tensor& gradient, const Tensor& rows,
                                                  std::int64_t count, const Tensor& places,
                                                  const Tensor& weights, Paired paired) {
  const Tensor flat = places.flatten();
  if (!weights.defined())
    return {spread(gradient.repeat_interleave(places.size(1), 0), flat, count, paired), {}};
  const auto type = weights.scalar_type();
  const Tensor g = gradient.to(type).unsqueeze(1);
  const Tensor choices = rows_at(places, rows, paired);
  const Tensor of_weights = at::bmm(g, choices.to(type).transpose(1, 2)).squeeze(1);
  const Tensor of_choices = at::bmm(weights.unsqueeze(2), g).to(rows.scalar_type());
  return {spread(of_choices.view({flat.size(0), rows.size(1)}), flat, count, paired), of_weights};
}

}  // namespace by_operators

Tensor undoing(const Tensor& order) {
  Tensor back = at::empty_like(order);
  back.scatter_(0, order, at::arange(order.size(0), order.options()));
  return back;
}

Tensor sum_of_choices(const Tensor& rows, const Tensor& places, const Tensor& weights,
                      Paired paired) {
  const std::int64_t choices = places.numel(), fewest = paired == Paired::choices
                                                            ? choices
                                                            : std::min<std::int64_t>(choices, 1);
  TESSERA_EXPECT(rows.dim() == 2 && places.dim() == 2 && rows.size(0) >= fewest,
                 "each choice must have a row of its own");
  const std::vector<Tensor> inputs{rows.contiguous(), places.contiguous()};
  if (!weights.defined()) return apply(SumOfChoices(paired), inputs);
  TESSERA_EXPECT(
      weights.sizes() == places.sizes() && weights.scalar_type() == accumulation_type(rows),
      "each choice must have one weight, in the type that computes");
  return apply(SumOfChoices(paired), {inputs[0], inputs[1], weights.contiguous()});
}

Tensor rows_of_groups(const Tensor& values, const Tensor& group_of) {
  TESSERA_EXPECT(values.dim() == 2 && group_of.dim() == 1 && group_of.scalar_type() == at::kLong,
                 "each row must have one group");
  return apply(RowsOfGroups(), {values, group_of});
}

}  // namespace tessera::kernels
