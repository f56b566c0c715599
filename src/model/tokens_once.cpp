// SPDX-License-Identifier: Apache-2.0
#include "tokens_once.hpp"

#include <algorithm>
#include <utility>

#include "row_order.hpp"
#include "tessera/kernels/choices.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/model/routing.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using kernels::Paired;

/// A token has no row for some ranks, and a rank no row for some choices.
Paired pairs(bool free_rows) { return free_rows ? Paired::some : Paired::rows; }

/// How many experts of each rank a token chose.
struct Needs {
  Tensor choices;  ///< [tokens, ranks] int64
  Tensor tokens;   ///< [tokens, ranks] int64: of the tokens so far, those with an expert of a rank

  /// [ranks]
  Tensor tokens_of_ranks() const { return tokens.select(0, tokens.size(0) - 1); }
};

/// `rank_of` [tokens, K]: of each choice.
Needs needs_of(const Tensor& rank_of, std::int64_t ranks) {
  const Tensor choices = at::zeros({rank_of.size(0), ranks}, rank_of.options())
                             .scatter_add_(1, rank_of, at::ones_like(rank_of));
  return {choices, choices.gt(0).cumsum(0)};
}

/// How many rows travel.
struct RowCounts {
  Tensor begins;             ///< [ranks] where the rows for each rank begin, on the device
  std::int64_t rows = 0;     ///< that this rank sends
  std::int64_t choices = 0;  ///< of the tokens that arrive, for experts here
  Tensor sent_and_received;  ///< [2, ranks] in host memory; undefined where numbers are fixed
  Tensor experts;            ///< [1, experts here] `choices` of each, where that is
};

RowCounts fixed_counts(const Needs& needs, const TokenExchange& exchange, const RoutingRule& rule) {
  const FixedRows each = exchange.fixed_rows({needs.tokens.size(0), rule.top_k, rule.experts});
  const std::int64_t ranks = exchange.ranks();
  exchange.expect_fit(needs.tokens_of_ranks(), each.tokens);
  RowCounts counts;
  counts.begins = at::arange(ranks, needs.tokens.options()) * each.tokens;
  counts.rows = ranks * each.tokens;
  counts.choices = ranks * std::min(each.choices, each.tokens * rule.top_k);
  return counts;
}

/// [ranks, 1 + experts of one] int64: tokens for each rank, and choices of each of its experts.
Tensor counts_of(const Tensor& choices, const Needs& needs) {
  const std::int64_t ranks = needs.tokens.size(1);
  return at::cat({needs.tokens_of_ranks().unsqueeze(1), choices.view({ranks, -1})}, 1);
}

/// `choices`: of each expert. The host waits for numbers that it does not know. Those of a
/// rehearsal are even.
RowCounts chosen_counts(const Tensor& chosen, const Tensor& choices, const Needs& needs,
                        const TokenExchange& exchange, const RoutingRule& rule) {
  const std::int64_t ranks = exchange.ranks();
  Tensor sent;
  if (rule.forced_even || kernels::shapes_alone(chosen.device())) {
    const Tensor even = even_choices(chosen.size(0), rule, at::kCPU);
    sent = counts_of(count_choices(even, rule.experts),
                     needs_of(even.div(rule.experts / ranks, "floor"), ranks));
  } else {
    sent = counts_of(choices, needs).to(at::kCPU);
  }
  const Tensor received = exchange.counts(sent), tokens = needs.tokens_of_ranks();
  RowCounts counts;
  counts.begins = tokens.cumsum(0) - tokens;
  counts.sent_and_received = at::stack({sent.select(1, 0), received.select(1, 0)});
  counts.experts = received.narrow(1, 1, received.size(1) - 1).sum(0, /*keepdim=*/true);
  counts.rows = counts.sent_and_received[0].sum().item<std::int64_t>();
  counts.choices = counts.experts.sum().item<std::int64_t>();
  return counts;
}

/// The rows that travel, rank by rank, in the order of tokens.
struct TokenRows {
  Tensor token;   ///< [rows] whose each is; the number of tokens: nobody's
  Tensor home;    ///< see Slot::home
  Tensor places;  ///< [tokens, K] the same for each choice
};

/// Rows that do not fit take the places of others: the step is computed again.
TokenRows rows_of(const Tensor& rank_of, const Needs& needs, const RowCounts& counts) {
  const std::int64_t tokens = needs.tokens.size(0), rows = counts.rows;
  Tensor next = needs.tokens + counts.begins;  // the place after that of a token's row
  if (!counts.sent_and_received.defined()) next = next.clamp_max(rows);
  next = next * needs.choices.gt(0);  // 0: no row
  const Tensor number = at::arange(tokens, next.options()).unsqueeze(1).expand_as(next);
  const Tensor token = at::full({rows + 1}, tokens, next.options())
                           .scatter_(0, next.flatten(), number.flatten())
                           .narrow(0, 1, rows);
  const Tensor home = next - 1;
  return {token, home, home.gather(1, rank_of)};
}

/// `counts`: see RowCounts::sent_and_received.
Arrival to_ranks(const Tensor& rows, const TokenExchange& exchange, const Tensor& counts) {
  if (!counts.defined()) return exchange.send(rows, {}, {});
  return exchange.send(rows, counts[0], counts[1]);
}

Arrival from_ranks(const Tensor& rows, const TokenExchange& exchange, const Tensor& counts) {
  if (!counts.defined()) return exchange.send(rows, {}, {});
  return exchange.send(rows, counts[1], counts[0]);
}

/// Of scores and experts [tokens, K], TokenRows::token and TokenRows::places: those of each row
/// that arrives, [R, K] each. One message has both: the type of scores holds all numbers of
/// experts. They begin at 1. Nobody's rows have 0, as those that a rehearsal gets from others. A
/// choice's gradient is that of the row for its rank.
class SentChoices final : public kernels::Operation {
 public:
  /// The exchange outlives every graph.
  SentChoices(const TokenExchange& exchange, Tensor counts)
      : exchange_(exchange), counts_(std::move(counts)) {}
  std::vector<Tensor> forward(kernels::Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[3]});
    const std::int64_t k = inputs[0].size(1);
    Tensor choices = at::cat({inputs[0], (inputs[1] + 1).to(inputs[0].scalar_type())}, 1);
    if (!counts_.defined()) choices = at::cat({choices, at::zeros({1, 2 * k}, choices.options())});
    const Tensor arrived = to_ranks(choices.index_select(0, inputs[2]), exchange_, counts_)();
    return {arrived.narrow(1, 0, k).contiguous(), arrived.narrow(1, k, k).to(at::kLong)};
  }
  std::vector<Tensor> backward(kernels::Kept& kept, std::vector<Tensor> gradients) override {
    const Tensor back = from_ranks(gradients[0].contiguous(), exchange_, counts_)();
    return {back.gather(0, kept.saved()[0]), {}, {}, {}};
  }

 private:
  const TokenExchange& exchange_;
  Tensor counts_;
};

/// Rows of the experts here, in their order.
struct ExpertRows {
  Tensor choice;  ///< [rows] which of the choices that arrived each is
  Tensor places;  ///< [R, K] of each choice; -1: an expert of another rank
  Tensor counts;  ///< [1, experts here]
};

/// `experts` [R, K] of the choices that arrived, from 1 on. Choices of other ranks come last. The
/// numbers of rows are those that were agreed on: a rehearsal gets others.
ExpertRows by_expert(const Tensor& experts, const RowCounts& agreed, const TokenExchange& exchange,
                     std::int64_t here) {
  const Tensor local =
      (experts - (exchange.rank() * here + 1)).clamp(-1, here).remainder(here + 1).flatten();
  const auto [sorted, order] = local.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor places = kernels::undoing(order).view(experts.sizes()),
               choice = order.narrow(0, 0, agreed.choices);
  if (agreed.experts.defined())
    return {choice, places.masked_fill(places.ge(agreed.choices), -1), agreed.experts};
  const Tensor wanted = at::searchsorted(sorted, at::arange(here, sorted.options()),
                                         /*out_int32=*/false, /*right=*/true);
  exchange.expect_fit(wanted.select(0, here - 1), agreed.choices);
  const Tensor ends = wanted.clamp_max(agreed.choices);
  return {choice, places.masked_fill(places.ge(ends.select(0, here - 1)), -1),
          ends.diff(1, 0, at::zeros({1}, ends.options())).unsqueeze(0)};
}

}  // namespace

void send_tokens_once(Flow& flow, const CellContext& context, const RoutingRule& rule) {
  const TokenExchange& exchange = *context.exchange;
  const std::int64_t here = rule.experts / exchange.ranks();
  const bool fixed = exchange.has_free_rows();
  const Tensor chosen = flow.take(Slot::route), sent = flow.take(Slot::sent),
               rank_of = chosen.div(here, "floor");
  const Needs needs = needs_of(rank_of, exchange.ranks());
  const RowCounts counts = fixed ? fixed_counts(needs, exchange, rule)
                                 : chosen_counts(chosen, sent, needs, exchange, rule);
  const Tensor& travelling = counts.sent_and_received;
  const TokenRows rows = rows_of(rank_of, needs, counts);
  const std::vector<Tensor> choices =
      kernels::apply_all(std::make_unique<SentChoices>(exchange, travelling),
                         {flow.take(Slot::scores), chosen, rows.token, rows.places});
  // Nobody's rows have any token's values.
  const Tensor token = fixed ? rows.token.clamp_max(chosen.size(0) - 1) : rows.token;
  *context.arrival = to_ranks(rows_of_tokens(flow.take(Slot::m), token, rows.home, pairs(fixed)),
                              exchange, travelling);
  const ExpertRows order = by_expert(choices[1], counts, exchange, here);
  flow[Slot::scores] = choices[0];
  flow[Slot::route] = order.places;
  flow[Slot::received] = order.counts;
  flow[Slot::sent] = travelling;
  flow[Slot::home] = rows.home;
  flow[Slot::order] = order.choice;
}

void take_tokens(Flow& flow, const CellContext& context, const RoutingRule& rule) {
  const Paired paired = pairs(context.exchange->has_free_rows());
  const Tensor choice = flow.take(Slot::order), places = flow[Slot::route],
               arrived = std::exchange(*context.arrival, nullptr)();
  Tensor ordered = rows_of_tokens(arrived, choice.div(rule.top_k, "floor"), places, paired);
  if (rule.before_experts) {
    const Tensor scores =
        rows_of_tokens(flow[Slot::scores].view({-1, 1}), choice, places.view({-1, 1}), paired);
    ordered = (ordered.to(scores.scalar_type()) * scores).to(ordered.scalar_type());
  }
  flow[Slot::m] = ordered;
}

void send_sums(Flow& flow, const CellContext& context, bool before) {
  const Tensor scores = flow.take(Slot::scores), places = flow.take(Slot::route);
  const Paired paired = pairs(context.exchange->has_free_rows());
  const Tensor sums =
      kernels::sum_of_choices(flow.take(Slot::m), places, before ? Tensor() : scores, paired);
  *context.arrival = from_ranks(sums, *context.exchange, flow.take(Slot::sent));
  flow.take(Slot::received);
}

void take_sums(Flow& flow, const CellContext& context) {
  const Tensor back = std::exchange(*context.arrival, nullptr)();
  flow[Slot::h] = kernels::sum_of_choices(back, flow.take(Slot::home), {},
                                          pairs(context.exchange->has_free_rows()));
}

}  // namespace tessera::model
