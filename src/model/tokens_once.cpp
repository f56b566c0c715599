// SPDX-License-Identifier: Apache-2.0
#include "tokens_once.hpp"

#include "row_order.hpp"
#include "tessera/kernels/choices.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/model/routing.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using kernels::Absent;

/// [tokens, ranks] int64: 1 where a token has an expert of a rank. `rank_of` [tokens, K].
Tensor needs_of(const Tensor& rank_of, std::int64_t ranks) {
  return at::zeros({rank_of.size(0), ranks}, rank_of.options()).scatter_(1, rank_of, 1);
}

/// How many rows travel.
struct RowCounts {
  Tensor begins;             ///< [ranks] where the rows for each rank begin, on the device
  std::int64_t rows = 0;     ///< that this rank sends
  std::int64_t choices = 0;  ///< of the tokens that arrive, for experts here
  Tensor sent_and_received;  ///< [2, ranks] in host memory; undefined where numbers are fixed
};

/// In host memory, choices that a rule or a rehearsal makes known: even ones go round the experts,
/// others in a rehearsal round the ranks, too.
Tensor known_choices(const Tensor& chosen, const RoutingRule& rule, std::int64_t ranks) {
  const Tensor choice = at::arange(chosen.numel(), at::kLong).view(chosen.sizes());
  if (rule.forced_even) return choice.remainder(rule.experts);
  const std::int64_t here = rule.experts / ranks;
  return choice.remainder(ranks) * here + choice.div(ranks, "floor").remainder(here);
}

/// [ranks, 2] int64: tokens for each rank, and their choices there.
Tensor counts_of(const Tensor& rank_of, const Tensor& needs) {
  return at::stack({needs.sum(0), count_choices(rank_of, needs.size(1))}, 1);
}

RowCounts fixed_counts(const Tensor& rank_of, const Tensor& needs, const TokenExchange& exchange,
                       const RoutingRule& rule) {
  const FixedRows each = exchange.fixed_rows({rank_of.size(0), rank_of.size(1), rule.experts});
  const std::int64_t ranks = exchange.ranks();
  exchange.expect_fit(needs.sum(0), each.tokens);
  exchange.expect_fit(count_choices(rank_of, ranks), each.choices);
  return {at::arange(ranks, needs.options()) * each.tokens,
          ranks * each.tokens,
          ranks * each.choices,
          {}};
}

/// The host waits for numbers that it does not know.
RowCounts chosen_counts(const Tensor& chosen, const Tensor& rank_of, const Tensor& needs,
                        const TokenExchange& exchange, const RoutingRule& rule) {
  const std::int64_t ranks = exchange.ranks();
  Tensor sent;
  if (rule.forced_even || kernels::shapes_alone(chosen.device())) {
    const Tensor known = known_choices(chosen, rule, ranks).div(rule.experts / ranks, "floor");
    sent = counts_of(known, needs_of(known, ranks));
  } else {
    sent = counts_of(rank_of, needs).to(at::kCPU);
  }
  const Tensor received = exchange.counts(sent.flatten(), 0);
  const Tensor rows = needs.sum(0);
  return {rows.cumsum(0) - rows, sent.select(1, 0).sum().item<std::int64_t>(),
          received.select(1, 1).sum().item<std::int64_t>(),
          at::stack({sent.select(1, 0), received.select(1, 0)})};
}

/// The rows that travel, rank by rank, in the order of tokens.
struct TokenRows {
  Tensor token;   ///< [rows] whose each is; the number of tokens: nobody's
  Tensor places;  ///< [tokens, K] of each choice
  Tensor home;    ///< see Slot::home
};

/// Rows that do not fit take the places of others: the step is computed again.
TokenRows rows_of_tokens(const Tensor& rank_of, const Tensor& needs, const RowCounts& counts) {
  const std::int64_t tokens = needs.size(0), rows = counts.rows;
  const Tensor places = (needs.cumsum(0) - 1 + counts.begins).clamp_max(rows - 1),
               beyond = at::full({}, rows, needs.options()),
               number = at::arange(tokens, needs.options()).unsqueeze(1).expand_as(needs);
  const Tensor token =
      at::full({rows + 1}, tokens, needs.options())
          .scatter_(0, places.where(needs.gt(0), beyond).flatten(), number.flatten())
          .narrow(0, 0, rows);
  const Tensor earlier =  // whether a token has an earlier choice of the same rank
      rank_of.unsqueeze(2).eq(rank_of.unsqueeze(1)).tril(-1).any(2);
  const Tensor of_choices = places.gather(1, rank_of);
  return {token, of_choices, of_choices.masked_fill(earlier, -1)};
}

Tensor to_ranks(const Tensor& rows, const TokenExchange& exchange, const Tensor& counts) {
  if (!counts.defined()) return exchange.to_experts(rows, {}, {});
  return exchange.to_experts(rows, counts[0], counts[1].unsqueeze(1));
}

/// Of scores [tokens, K], TokenRows::token and TokenRows::places: each row has all scores of its
/// token. A choice's gradient is that of its rank.
struct ScoresOfRows final : kernels::Operation {
  std::vector<Tensor> forward(kernels::Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[2]});
    return {inputs[0].index_select(0, inputs[1].clamp_max(inputs[0].size(0) - 1))};
  }
  std::vector<Tensor> backward(kernels::Kept& kept, std::vector<Tensor> gradients) override {
    return {gradients[0].gather(0, kept.saved()[0]), {}, {}};
  }
};

/// Scores and experts of tokens that arrived: [R, K] each, `here` for an expert of another rank.
struct Arrived {
  Tensor scores, experts;
};

/// Nobody's rows have no choices. One message has scores and experts: the
/// type of scores holds all numbers of experts.
Arrived send_choices(const Tensor& scores, const Tensor& chosen, const TokenRows& rows,
                     const TokenExchange& exchange, const Tensor& counts, const RoutingRule& rule) {
  const std::int64_t k = chosen.size(1), here = rule.experts / exchange.ranks();
  const Tensor none = at::full({1, k}, rule.experts, chosen.options()),
               experts =
                   at::cat({chosen, none}).index_select(0, rows.token).to(scores.scalar_type()),
               sent = kernels::apply(ScoresOfRows(), {scores, rows.token, rows.places});
  const Tensor arrived = to_ranks(at::cat({sent, experts}, 1), exchange, counts);
  const Tensor local = arrived.detach().narrow(1, k, k).to(at::kLong) - exchange.rank() * here;
  return {arrived.narrow(1, 0, k), local.masked_fill(local.lt(0).logical_or(local.ge(here)), here)};
}

/// `rows` of tokens that arrived, expert by expert. Each is a token for one of its experts.
void order_by_expert(Flow& flow, const Tensor& tokens, const Arrived& arrived, std::int64_t rows,
                     const TokenExchange& exchange, const RoutingRule& rule) {
  const std::int64_t here = rule.experts / exchange.ranks();
  const Tensor experts = arrived.experts.flatten(),
               order = experts.argsort(/*stable=*/true, 0, false), first = order.narrow(0, 0, rows);
  Tensor counts = count_choices(experts, here + 1).narrow(0, 0, here),
         places = kernels::undoing(order).view(arrived.experts.sizes());
  // There are more where they do not fit, and in a rehearsal, which receives what it sent.
  counts = counts.cumsum(0).clamp_max(rows).diff(1, 0, at::zeros({1}, counts.options()));
  places = places.masked_fill(arrived.experts.eq(here).logical_or(places.ge(rows)), -1);
  Tensor ordered = rows_of_choices(tokens, {first, places}, Absent::some);
  if (rule.before_experts) {
    const Tensor scores = rows_of_choices(arrived.scores.reshape({-1, 1}),
                                          {first, places.view({-1, 1})}, Absent::some);
    ordered = (ordered.to(scores.scalar_type()) * scores).to(ordered.scalar_type());
  }
  flow[Slot::m] = ordered;
  flow[Slot::route] = places;
  flow[Slot::scores] = arrived.scores;
  flow[Slot::received] = counts.unsqueeze(0);
}

}  // namespace

void send_tokens_once(Flow& flow, const CellContext& context, const RoutingRule& rule) {
  const TokenExchange& exchange = *context.exchange;
  const Tensor chosen = flow.take(Slot::route),
               rank_of = chosen.div(rule.experts / exchange.ranks(), "floor"),
               needs = needs_of(rank_of, exchange.ranks());
  const RowCounts counts = exchange.has_free_rows()
                               ? fixed_counts(rank_of, needs, exchange, rule)
                               : chosen_counts(chosen, rank_of, needs, exchange, rule);
  const TokenRows sent = rows_of_tokens(rank_of, needs, counts);
  const Arrived arrived =
      send_choices(flow.take(Slot::scores), chosen, sent, exchange, counts.sent_and_received, rule);
  const SentRows sends{sent.token.clamp_max(chosen.size(0) - 1) * chosen.size(1), sent.home};
  const Tensor rows = to_ranks(rows_of_choices(flow.take(Slot::m), sends, Absent::some), exchange,
                               counts.sent_and_received);
  order_by_expert(flow, rows, arrived, counts.choices, exchange, rule);
  flow[Slot::sent] = counts.sent_and_received;
  flow[Slot::home] = sent.home;
}

void return_sums(Flow& flow, const CellContext& context, bool before) {
  const Tensor scores = flow.take(Slot::scores), places = flow.take(Slot::route),
               counts = flow.take(Slot::sent);
  const Tensor sums =
      kernels::sum_of_choices(flow.take(Slot::m), places, before ? Tensor() : scores, Absent::some);
  const Tensor back = counts.defined()
                          ? context.exchange->from_experts(sums, counts[0], counts[1].unsqueeze(1))
                          : context.exchange->from_experts(sums, {}, {});
  flow.take(Slot::received);
  flow[Slot::h] = kernels::sum_of_choices(back, flow.take(Slot::home), {}, Absent::some);
}

}  // namespace tessera::model
