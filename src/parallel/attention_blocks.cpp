// SPDX-License-Identifier: Apache-2.0
#include "attention_blocks.hpp"

#include <cmath>

#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::AttentionPart;
using kernels::AttentionValue;

/// [B, S, ...] -> the tile's rows of some sequences.
struct Cut {
  Range sequences, positions;
  Tensor of(const Tensor& x) const {
    return x.narrow(0, sequences.begin, sequences.size).narrow(1, positions.begin, positions.size);
  }
};

Tensor window_mask(const AttentionTile& tile, std::int64_t window, at::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  const Tensor query =
      at::arange(tile.query_position, tile.query_position + tile.rows.size, options).unsqueeze(1);
  const Tensor back =
      query - at::arange(tile.key_position, tile.key_position + tile.columns.size, options);
  return window > 0 ? back.ge(0).logical_and_(back.lt(window)) : back.ge(0);
}

bool has_documents(const AttentionPlan& plan) {
  return plan.documents && !plan.documents->begins().empty();
}

/// All queries and keys, which all see each other.
AttentionPart open_part(const AttentionPlan& plan, const Tensor& q, const KeyValueBlock& block) {
  AttentionPart part;
  part.q = q;
  part.k = block.k;
  part.v = block.v;
  part.scale = plan.scale;
  return part;
}

/// Every run of one document among this rank's positions sees itself, up to the window.
AttentionPart own_runs(const AttentionPlan& plan, const Tensor& q, const KeyValueBlock& block) {
  AttentionPart part = open_part(plan, q, block);
  part.causal = true;
  part.band = {plan.window > 0 ? plan.window - 1 : -1, 0};
  const auto held = plan.context.cut.ranges(plan.context.cp->rank());
  if (has_documents(plan)) part.segments = plan.documents->segments(held, q.device());
  return part;
}

/// Calls work(part, rows, columns) for every tile of the block that `owner` holds: for all
/// sequences together, or, where each has documents of its own, one by one. All runs of this rank's
/// own block are one part where a kernel takes them.
template <class Work>
void for_tiles(const AttentionPlan& plan, const Tensor& q, const KeyValueBlock& block, int owner,
               Work work) {
  const ContextParallel& context = plan.context;
  const int me = context.cp->rank();
  const auto queries = context.cut.ranges(me), keys = context.cut.ranges(owner);
  const bool in_bands = kernels::attends_in_bands(open_part(plan, q, block)),
             runs_at_once = in_bands && has_documents(plan) && owner == me;
  const auto run = [&](Range sequences, std::span<const std::int64_t> documents) {
    for (const AttentionTile& tile :
         attention_tiles(queries, keys, documents, plan.window, in_bands)) {
      if (runs_at_once && tile.query_position == tile.key_position) continue;
      const Cut rows{sequences, tile.rows}, columns{sequences, tile.columns};
      AttentionPart part = open_part(plan, rows.of(q), {columns.of(block.k), columns.of(block.v)});
      if (in_bands)
        part.band = tile.band(plan.window);
      else if (tile.mask == AttentionTile::Mask::window)
        part.mask = window_mask(tile, plan.window, q.device());
      else
        part.causal = tile.mask == AttentionTile::Mask::diagonal;
      work(part, rows, columns);
    }
  };
  const Range all{0, q.size(0)};
  if (runs_at_once) {
    const Cut whole{all, {0, q.size(1)}};
    work(own_runs(plan, q, block), whole, whole);
  }
  if (!has_documents(plan)) return run(all, {});
  for (std::int64_t b = 0; b < all.size; ++b)
    run({b, 1}, plan.documents->begins()[static_cast<std::size_t>(b)]);
}

}  // namespace

std::optional<AttentionPart> whole_part(const AttentionPlan& plan, const Tensor& q,
                                        const KeyValueBlock& block) {
  if (plan.context.cp->size() > 1 || !kernels::attends_in_bands(open_part(plan, q, block)))
    return std::nullopt;
  return own_runs(plan, q, block);
}

void add_sinks(AttentionValue& value, const Tensor& sinks) {
  const Tensor after = at::logaddexp(value.logsumexp, sinks.to(value.logsumexp.scalar_type()));
  value.out.mul_((value.logsumexp - after).exp_().unsqueeze(-1));
  value.logsumexp = after;
}

/// A sink's probability is exp(sink - L) and its value 0, so that the gradient of its score is
/// -exp(sink - L) dO O.
Tensor sinks_gradient(const Tensor& sinks, const AttentionValue& value, const Tensor& grad_out) {
  const auto type = kernels::accumulation_type(value.out);
  const Tensor dot = (grad_out.to(type) * value.out.to(type)).sum(-1);
  return ((sinks.to(type) - value.logsumexp).exp_() * dot)
      .sum(at::IntArrayRef{0, 1})
      .neg_()
      .to(sinks.scalar_type());
}

AttentionSum::AttentionSum(const AttentionPlan& plan, const Tensor& q, std::int64_t value_dim)
    : plan_(plan),
      q_(q),
      out_(at::zeros({q.size(0), q.size(1), q.size(2), value_dim},
                     q.options().dtype(kernels::accumulation_type(q)))),
      logsumexp_(at::full({q.size(0), q.size(1), q.size(2)}, -HUGE_VAL, out_.options())) {}

void AttentionSum::add(const KeyValueBlock& block, int owner) {
  for_tiles(
      plan_, q_, block, owner, [this](const AttentionPart& part, const Cut& rows, const Cut&) {
        const AttentionValue more = kernels::attention_part(part);
        const Tensor out = rows.of(out_), before = rows.of(logsumexp_),
                     after = at::logaddexp(before, more.logsumexp);
        out.mul_((before - after).exp_().unsqueeze(-1));
        out.addcmul_(more.out.to(out.scalar_type()), (more.logsumexp - after).exp_().unsqueeze(-1));
        before.copy_(after);
      });
}

AttentionGradient::AttentionGradient(const AttentionPlan& plan, const Tensor& q,
                                     const AttentionValue& value, const Tensor& grad_out)
    : plan_(plan),
      q_(q),
      grad_out_(grad_out.contiguous()),
      grad_q_(at::zeros(q.sizes(), q.options().dtype(kernels::accumulation_type(q)))),
      value_(value) {}

void AttentionGradient::add(const KeyValueBlock& block, int owner, const KeyValueBlock& gradients) {
  for_tiles(plan_, q_, block, owner,
            [&](const AttentionPart& part, const Cut& rows, const Cut& columns) {
              const AttentionValue merged{rows.of(value_.out), rows.of(value_.logsumexp)};
              const auto more = kernels::attention_part_backward(part, merged, rows.of(grad_out_));
              rows.of(grad_q_).add_(more.q);
              columns.of(gradients.k).add_(more.k);
              columns.of(gradients.v).add_(more.v);
            });
}

}  // namespace tessera::parallel
