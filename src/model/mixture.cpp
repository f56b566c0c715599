// SPDX-License-Identifier: Apache-2.0
// A mixture of experts: router, dispatch of tokens to experts, grouped products, weighted sum; no
// token is dropped.
#include <optional>
#include <utility>

#include "cell_functions.hpp"
#include "row_order.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/choices.hpp"
#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/model/balance_loss.hpp"
#include "tessera/model/routing.hpp"
#include "tokens_once.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

/// Whether the host must know how many rows each expert gets, for which it waits: to send them to
/// other ranks, or to multiply group by group. With free rows it asks later, if at all.
bool host_counts(const TokenExchange& exchange, const Tensor& rows) {
  if (exchange.has_free_rows()) return false;
  return exchange.counts_on_host() || !kernels::groups_in_one_kernel(rows);
}

/// As row_groups(): the host waits once for counts that it needs in all products. Those of a
/// rehearsal are even.
Tensor groups_of(const Tensor& counts, const Tensor& rows) {
  if (kernels::groups_in_one_kernel(rows) || counts.is_cpu())
    return kernels::row_groups(counts, rows);
  if (!kernels::shapes_alone(rows.device())) return counts.to(at::kCPU);
  return at::full({counts.size(0)}, rows.size(0) / counts.size(0), at::kLong);
}

/// The order that puts rows expert by expert, within one rank by rank, and free ones at the end.
Tensor expert_order(const Tensor& received, const Tensor& rows, const TokenExchange& exchange) {
  return experts_of_rows(received, rows, exchange.has_free_rows())
      .argsort(/*stable=*/true, 0, false);
}

/// For rows that lie expert by expert, `counts` of each: their experts' biases [experts, out].
class RowBiases {
 public:
  RowBiases(const Tensor& counts, const Tensor& rows, bool free_rows)
      : experts_(experts_of_rows(counts.unsqueeze(0), rows, free_rows)) {
    if (!free_rows) return;
    taken_ = experts_.lt(counts.size(0)).unsqueeze(1);
    experts_ = experts_.clamp_max(counts.size(0) - 1);
  }
  /// No gradient of a free row counts, whatever it is.
  Tensor of(const Tensor& biases) const {
    const Tensor rows = kernels::rows_of_groups(biases, experts_);
    return taken_.defined() ? rows.where(taken_, at::zeros({}, rows.options())) : rows;
  }

 private:
  Tensor experts_;
  Tensor taken_;  ///< undefined: no row is free
};

/// `counts` of these choices in host memory. Choices that are even, and those of a rehearsal, are
/// known without the device.
Tensor on_host(const Tensor& counts, const Tensor& chosen, const RoutingRule& rule) {
  const bool known = rule.forced_even || kernels::shapes_alone(chosen.device());
  if (!known) return counts.to(at::kCPU);
  return count_choices(even_choices(chosen.size(0), rule, at::kCPU), rule.experts);
}

}  // namespace

CellFunction CellMaker::router(int mixture) const {
  return [rule = shape_.mixture->routing, mixture, balanced = model_.balance.wanted()](
             Flow& flow, const CellContext& context) {
    Tensor logits = context.operations->product(flow[Slot::m], context.weights[0]);
    if (context.weights.size() > 1) logits = logits + context.weights[1].value;
    logits = logits.to(kernels::accumulation_type(logits));
    const Tensor bias = context.buffers.empty() ? Tensor() : context.buffers[0];
    const Routing routing = route(logits, bias, rule);
    const Tensor counts = count_choices(routing.chosen, rule.experts);
    if (context.loads) context.loads->add(mixture, counts);
    if (balanced) {
      const Tensor terms = balance_terms(counts, routing.probabilities, logits);
      Tensor& sum = flow[Slot::balance];
      sum = sum.defined() ? sum + terms : terms;
    }
    flow[Slot::scores] = routing.weights;
    flow[Slot::route] = routing.chosen;
    flow[Slot::sent] = counts;
  };
}

CellFunction CellMaker::dispatch() const {
  return [rule = shape_.mixture->routing](Flow& flow, const CellContext& context) {
    const TokenExchange& exchange = *context.exchange;
    if (exchange.sends_once()) return send_tokens_once(flow, context, rule);
    const Tensor chosen = flow.take(Slot::route),
                 order = chosen.flatten().argsort(/*stable=*/true, 0, false);
    Tensor sent = flow.take(Slot::sent);
    if (host_counts(exchange, flow[Slot::m])) sent = on_host(sent, chosen, rule);
    const Tensor& scores_of_tokens = flow[Slot::scores];
    const SentRows sends =
        spaced({order, kernels::undoing(order).view(scores_of_tokens.sizes())}, sent, exchange);
    const Tensor received = received_rows(sent, sends.order.size(0) / exchange.ranks(), exchange);
    const Tensor token = sends.order.div(sends.places.size(1), "floor");
    Tensor rows = rows_of_tokens(flow.take(Slot::m), token, sends.places);
    if (rule.before_experts) {
      const Tensor scores =
          reordered(scores_of_tokens.flatten(), sends.order, sends.places.flatten()).unsqueeze(1);
      rows = (rows.to(scores.scalar_type()) * scores).to(rows.scalar_type());
    }
    *context.arrival = exchange.send(rows, sent, received);
    flow[Slot::route] = sends.places;
    flow[Slot::sent] = sent;
    flow[Slot::received] = received;
  };
}

CellFunction CellMaker::dispatched() const {
  return [rule = shape_.mixture->routing](Flow& flow, const CellContext& context) {
    if (context.exchange->sends_once()) return take_tokens(flow, context, rule);
    Tensor rows = std::exchange(*context.arrival, nullptr)();
    if (flow[Slot::received].size(0) > 1) {
      const Tensor by_expert = expert_order(flow[Slot::received], rows, *context.exchange);
      rows = reordered(rows, by_expert, kernels::undoing(by_expert));
      flow[Slot::order] = by_expert;
    }
    flow[Slot::m] = rows;
  };
}

CellFunction CellMaker::experts() const {
  const MixtureShape& m = *shape_.mixture;
  return [clamped = m.clamped, biased = m.biased](Flow& flow, const CellContext& context) {
    const Tensor counts = flow[Slot::received].sum(0), rows = flow.take(Slot::m);
    const Tensor groups = groups_of(counts, rows);
    std::optional<RowBiases> biases;
    if (biased) biases.emplace(counts, rows, context.exchange->has_free_rows());
    const auto product = [&](const Tensor& x, std::size_t weight) {
      const Tensor y = context.operations->expert_product(x, context.weights[weight], groups);
      if (!biases) return y;
      const Tensor bias = biases->of(context.weights[3 + weight].value);
      return y + (weight == 2 ? bias / context.expert_parts : bias);  // outputs of parts add up
    };
    const Tensor gate = product(rows, 0), up = product(rows, 1);
    const Tensor gated = clamped ? kernels::clamped_gate(gate, up, clamped->alpha, clamped->limit)
                                 : kernels::swiglu(gate, up);
    flow[Slot::m] = product(gated, 2);
  };
}

CellFunction CellMaker::combine() const {
  return [before = shape_.mixture->routing.before_experts](Flow& flow, const CellContext& context) {
    if (context.exchange->sends_once()) return send_sums(flow, context, before);
    const Tensor sent = flow.take(Slot::sent), received = flow.take(Slot::received);
    Tensor rows = flow.take(Slot::m);
    if (const Tensor by_expert = flow.take(Slot::order); by_expert.defined())
      rows = reordered(rows, kernels::undoing(by_expert), by_expert);
    *context.arrival = context.exchange->send(rows, received, sent);
  };
}

CellFunction CellMaker::combined() const {
  return [before = shape_.mixture->routing.before_experts](Flow& flow, const CellContext& context) {
    if (context.exchange->sends_once()) return take_sums(flow, context);
    const Tensor rows = std::exchange(*context.arrival, nullptr)(), places = flow.take(Slot::route),
                 scores = flow.take(Slot::scores);
    flow[Slot::h] = kernels::sum_of_choices(rows, places, before ? Tensor() : scores);
  };
}

}  // namespace tessera::model
