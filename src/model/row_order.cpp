// SPDX-License-Identifier: Apache-2.0
#include "row_order.hpp"

#include "tessera/kernels/operation.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using kernels::Kept;

/// Of tokens, whose each row is, and the places of a token's rows.
class RowsOfTokens final : public kernels::Operation {
 public:
  explicit RowsOfTokens(kernels::Paired paired) : paired_(paired) {}
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[2]});
    return {inputs[0].index_select(0, inputs[1])};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    return {kernels::sum_of_choices(gradients[0], kept.saved()[0], {}, paired_), {}, {}};
  }

 private:
  kernels::Paired paired_;
};

/// Of rows, order and the way back.
struct Reordered final : kernels::Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[2]});
    return {inputs[0].index_select(0, inputs[1])};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    return {gradients[0].index_select(0, kept.saved()[0]), {}, {}};
  }
};

}  // namespace

Tensor rows_of_tokens(const Tensor& tokens, const Tensor& of, const Tensor& places,
                      kernels::Paired paired) {
  return kernels::apply(RowsOfTokens(paired), {tokens, of, places});
}

SentRows spaced(SentRows sorted, const Tensor& sent, const TokenExchange& exchange) {
  if (!exchange.has_free_rows()) return sorted;
  const std::int64_t ranks = exchange.ranks(), choices = sorted.order.size(0);
  const std::int64_t rows =
      exchange.fixed_rows({sorted.places.size(0), sorted.places.size(1), sent.size(0)}).choices;
  const Tensor counts = sent.view({ranks, -1}).sum(1), ends = counts.cumsum(0),
               begins = ends - counts;
  exchange.expect_fit(counts, rows);
  const auto numbers = counts.options();
  const Tensor row = at::arange(choices, numbers),
               rank = at::searchsorted(ends, row, /*out_int32=*/false, /*right=*/true);
  const Tensor moves = at::arange(ranks, numbers) * rows - begins,
               place = (row + moves.index_select(0, rank)).clamp_max(ranks * rows - 1);
  const Tensor from = (begins.unsqueeze(1) + at::arange(rows, numbers)).clamp_max(choices - 1);
  return {sorted.order.index_select(0, from.flatten()),
          place.index_select(0, sorted.places.flatten()).view(sorted.places.sizes())};
}

Tensor received_rows(const Tensor& sent, std::int64_t rows, const TokenExchange& exchange) {
  const Tensor received = exchange.counts(sent);
  if (!exchange.has_free_rows()) return received;
  const Tensor ends = received.cumsum(1).clamp_max(rows);
  return ends.diff(1, 1, at::zeros({received.size(0), 1}, ends.options()));
}

Tensor reordered(const Tensor& rows, const Tensor& order, const Tensor& back) {
  return kernels::apply(Reordered(), {rows, order, back});
}

Tensor experts_of_rows(const Tensor& received, const Tensor& rows, bool free_rows) {
  const Tensor counts = received.to(rows.device(), /*non_blocking=*/true);
  const std::int64_t ranks = received.size(0), experts = received.size(1);
  if (!free_rows)
    return at::arange(experts, counts.options())
        .repeat({ranks})
        .repeat_interleave(counts.flatten(), 0, rows.size(0));
  const Tensor row = at::arange(rows.size(0) / ranks, counts.options()).repeat({ranks, 1});
  return at::searchsorted(counts.cumsum(1), row, /*out_int32=*/false, /*right=*/true).flatten();
}

}  // namespace tessera::model
