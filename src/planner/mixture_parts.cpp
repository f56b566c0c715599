// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cell_parts.hpp"
#include "physics.hpp"
#include "tessera/plan/expert_rows.hpp"

namespace tessera::planner {

void CellParts::mixture() {
  const ExpertShape& shape = *work.model.mixture;
  const double dim = static_cast<double>(work.model.dim),
               count = static_cast<double>(shape.experts),
               copies = static_cast<double>(shape.top_k);
  const double routed = tokens() / work.tp;  // that this rank sends to experts
  linear(routed, count, dim, {.again = full(), .format = Format::bf16});
  stream(routed * count * 16, routed * count * 16, full());
  const double busiest = work.balanced ? 1 : 1 + stack.imbalance;
  experts(routed * copies * work.etp * busiest, count / work.ep);
  // Rows are put in order on both sides of the exchange.
  const double more = stack.mixture_traffic, moved = 8 * dim * routed * copies * work.expert_rows();
  stream(moved, moved, full(), more);
  stream(10 * dim * routed, 8 * dim * routed, full());  // norm, and the sum
  if (shape.shared > 0) shared_experts();
  exchange(routed);
}

void CellParts::experts(double computed, double local) {
  const ExpertShape& shape = *work.model.mixture;
  const bool gated = work.model.gated;
  const double dim = static_cast<double>(work.model.dim),
               hidden = static_cast<double>(shape.hidden) / work.etp;
  linear(computed / local, (gated ? 2 : 1) * hidden, dim, {.again = full(), .experts = local});
  linear(computed / local, dim, hidden,
         {.again = full(), .quantised = !work.fused_grouped, .experts = local});
  double forward = gated ? 6 : 4, backward = gated ? 10 : 6;
  if (work.fused_grouped) {  // in the product's epilogue, and cast there
    forward = 0;
    backward /= 2;
  }
  const double values = hidden * computed * work.expert_rows();
  stream(forward * values, backward * values, full() || recompute == Recompute::expert_activation,
         stack.mixture_traffic);
  if (!shape.biased || work.fused_grouped) return;
  const double added = stack.expert_bias_bytes / 2 * dim * computed;
  stream(added, added, full(), 1);
}

void CellParts::shared_experts() {
  const double dim = static_cast<double>(work.model.dim),
               width = static_cast<double>(work.model.mixture->shared) / work.tp;
  linear(tokens(), 2 * width, dim, {.again = full(), .quantised = false});
  linear(tokens(), dim, width, {.again = full()});
  stream(6 * width * tokens(), 10 * width * tokens(), full());
}

namespace {

/// What a rank sends for each token.
struct TokenRows {
  double rows;
  double kept = 1;     ///< share of the rows that crosses domains
  double choices = 0;  ///< numbers of 4 bytes in another message
};

TokenRows rows_of_token(const Workload& work, const Group& group) {
  const ExpertShape& shape = *work.model.mixture;
  const auto top_k = static_cast<double>(shape.top_k);
  if (work.dispatcher == Dispatcher::alltoall) return {top_k * work.expert_rows()};
  const auto reached = [&](int targets) {
    return plan::ranks_of_token({1, shape.top_k, shape.experts, targets});
  };
  TokenRows of{reached(group.ranks)};
  if (work.dispatcher == Dispatcher::once_a_domain) {
    if (group.domains() > 1) of.kept = std::min(1.0, reached(group.domains()) / of.rows);
    return of;
  }
  if (work.expert_capacity > 0)
    of.rows = std::min(work.expert_capacity * of.rows, static_cast<double>(group.ranks));
  if (work.ep > 1) of.choices = 2 * top_k * of.rows;
  return of;
}

}  // namespace

void CellParts::exchange(double routed) {
  if (work.ep == 1 && work.etp == 1) return;
  const double copies = static_cast<double>(work.model.mixture->top_k);
  const Group group = group_of(machine, work.ep, work.etp);
  const auto [rows, kept, choices] = rows_of_token(work, group);
  const double sent =
      routed * rows * static_cast<double>(work.model.dim) * element_bytes(work.precision);
  double both = 2 * exchange_seconds(machine, sent, group, kept);
  time.travels = both / stack.dispatch;
  if (choices > 0) both += exchange_seconds(machine, 4 * routed * choices, group, 1);
  both /= stack.dispatch;
  double forward = both, backward = both;
  if (work.exchange_overlap) {
    // Beside another microbatch's computation, from which it takes multiprocessors.
    const auto exposed = [](double exchange, double busy) {
      return std::max(0.0, exchange - busy) + physics::kExchangeShare * std::min(exchange, busy);
    };
    forward = exposed(forward, time.forward.total());
    backward = exposed(backward, time.input.total() + time.weight.total());
  }
  if (work.etp > 1) {
    const double gathers =
        2 * gather_seconds(machine,
                           routed * copies * work.etp * static_cast<double>(work.model.dim) *
                               element_bytes(work.precision),
                           group_of(machine, work.etp, 1));
    forward += gathers;
    backward += gathers;
  }
  time.forward[Category::ep] += forward;
  time.input[Category::ep] += backward;
  if (full()) time.recomputed[Category::ep] += forward;
  const double calls = choices > 0 ? 3 : 2;
  time.calls += full() ? 3 * calls : 2 * calls;
}

}  // namespace tessera::planner
