// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "cell_parts.hpp"

namespace tessera::planner {

void CellParts::attention() {
  const Architecture& model = work.model;
  const double dim = static_cast<double>(model.dim);
  if (model.latent)
    latent_projections();
  else
    projections();
  stream(10 * dim * rows(), 8 * dim * rows(), elementwise_again());  // norm, and the sum
  tensor_parallel(attention_again());
}

void CellParts::projections() {
  const Architecture& model = work.model;
  const double dim = static_cast<double>(model.dim), head = static_cast<double>(model.head_dim);
  const double queries = static_cast<double>(model.heads) * head / work.tp;
  const double keys = std::max(static_cast<double>(model.kv_heads) / work.tp, 1.0) * head;
  if (half_products_again()) {  // wq and wv are kept
    linear(tokens(), queries + keys, dim);
    linear(tokens(), keys, dim, {.again = true, .quantised = false});
    linear(tokens(), dim, queries, {.again = true});
  } else {
    linear(tokens(), queries + 2 * keys, dim, {.again = full()});
    linear(tokens(), dim, queries, {.again = attention_again()});
  }
  const double rope = 4 * (queries + keys) * tokens();
  stream(rope, rope, elementwise_again());
  if (model.qk_norm) stream(rope, 1.5 * rope, elementwise_again());
  core(head, 2 * element_bytes(work.precision) * keys);
}

void CellParts::latent_projections() {
  const Architecture& model = work.model;
  const model::LatentAttention& latent = *model.latent;
  const double dim = static_cast<double>(model.dim), heads = static_cast<double>(model.heads),
               nope = static_cast<double>(latent.nope_dim),
               rotated = static_cast<double>(latent.rope_dim),
               value = static_cast<double>(latent.value_dim),
               query_rank = static_cast<double>(latent.query_rank),
               rank = static_cast<double>(latent.rank);
  const bool up = full() || recompute == Recompute::latent_up;
  const double width = heads * (nope + rotated);
  if (query_rank > 0) {
    linear(rows(), query_rank, dim, {.again = attention_again()});
    linear(tokens(), width / work.tp, query_rank, {.again = up});
  } else {
    linear(tokens(), width / work.tp, dim, {.again = attention_again()});
  }
  linear(rows(), rank + rotated, dim, {.again = attention_again(), .quantised = false});
  linear(tokens(), heads * (nope + value) / work.tp, rank, {.again = up});
  linear(tokens(), dim, heads * value / work.tp, {.again = attention_again()});
  // Queries are rotated in place; keys are put together from their parts.
  const double rope = (4 * heads * rotated + 2 * heads * nope + 2 * width) / work.tp * tokens();
  stream(rope, rope, elementwise_again() || up);
  core(nope + rotated, 2 * element_bytes(work.precision) * width / work.tp);
}

namespace {

/// Scores under a causal mask of the first `positions` queries, which see at most `window` keys.
double visible_scores(double positions, double window) {
  const double growing = std::min(positions, window);
  return growing * growing / 2 + (positions - growing) * window;
}

/// Scores of the last of `ranks` with ranges of a sequence in order, to the mean of them.
double scores_of_last(double seq, double window, int ranks) {
  const double all = visible_scores(seq, window);
  return (all - visible_scores(seq - seq / ranks, window)) * ranks / all;
}

}  // namespace

void CellParts::core(double head_dim, double kv_bytes) {
  const double seq = static_cast<double>(work.seq);
  const double windowed =
      work.model.window > 0 ? std::min(2.0 * static_cast<double>(work.model.window), seq) : seq;
  const double rate = product_rate() * stack.attention_rate;
  double forward = 0, backward = 0, flops = 0;
  for (const double mean : std::array{seq, windowed}) {
    double span = mean;
    if (work.ranges_in_order) {  // the others wait for the last rank, or have its core meanwhile
      const double more = scores_of_last(seq, mean < seq ? mean / 2 : seq, work.cp) - 1;
      span *= 1 + more / (machine.host ? machine.host->crowd : 1);
    }
    AttentionWork one{tokens() * work.model.attention_width() / work.tp * span, mean / work.cp,
                      head_dim};
    flops += one.flops / 2;
    forward += attention_seconds(machine, stack.attention, one, rate) / 2;
    one.backward = true;
    backward += attention_seconds(machine, stack.attention, one, rate) / 2;
  }
  note("attention", flops, tokens() * (kv_bytes + 2 * work.model.attention_width() / work.tp),
       forward);
  if (work.cp > 1) share_keys(forward, backward, kv_bytes);
  time.forward[Category::attention] += forward;
  time.input[Category::attention] += backward;
  if (attention_again()) time.recomputed[Category::attention] += forward;
}

void CellParts::share_keys(double forward, double backward, double kv_bytes) {
  const Group group = group_of(machine, work.cp, work.tp);
  const double own = tokens() * kv_bytes;
  // The cores of a host copy what they send; links of GPUs do it beside the computation.
  const double hidden = machine.host ? 0 : 1.0 / work.cp;
  const auto exposed = [&](double sent, double computed) {
    return std::max(0.0, sent - computed * hidden);
  };
  const double width = work.model.attention_width() / 2 / work.tp;
  const int steps = work.cp - 1;
  double there = 0, back = 0, calls = 0;  // of one forward
  if (work.gathers_keys) {
    const double gather = gather_seconds(machine, own * work.cp, group) + turn_seconds(machine);
    // Gradients are added in float32, after all are there.
    const double wide = 4 / element_bytes(work.precision);
    there = exposed(gather, forward);
    back = exposed(gather, backward) + turn_seconds(machine) +
           gather_seconds(machine, own * wide * work.cp, group);
    calls = 1;
  } else {
    const double send = send_seconds(machine, own, group) + turn_seconds(machine);
    there = steps * exposed(send, forward);
    back = steps * exposed(2 * send, backward);
    calls = steps;
  }
  // Partial outputs are rescaled and added in float32; so are gradients of keys and values.
  there += stream_seconds(machine, tokens() * width * 12 * steps);
  back += stream_seconds(machine, tokens() * (kv_bytes + 2 * width) * 3 * steps);
  time.forward[Category::cp] += there;
  time.input[Category::cp] += back;
  if (attention_again()) time.recomputed[Category::cp] += there;
  time.calls += calls * (attention_again() ? 2 : 1) + (work.gathers_keys ? 2 : steps);
}

}  // namespace tessera::planner
