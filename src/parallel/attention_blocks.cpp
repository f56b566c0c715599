// SPDX-License-Identifier: Apache-2.0
#include "attention_blocks.hpp"

#include <cmath>

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

/// Calls work(part, rows, columns) for every tile of the block that `owner` holds: for all
/// sequences together, or, where each has documents of its own, one by one.
template <class Work>
void for_tiles(const AttentionPlan& plan, const Tensor& q, const KeyValueBlock& block, int owner,
               Work work) {
  const ContextParallel& context = plan.context;
  const auto queries = context.cut.ranges(context.cp->rank()), keys = context.cut.ranges(owner);
  const auto run = [&](Range sequences, std::span<const std::int64_t> documents) {
    for (const AttentionTile& tile : attention_tiles(queries, keys, documents, plan.window)) {
      const Cut rows{sequences, tile.rows}, columns{sequences, tile.columns};
      AttentionPart part{rows.of(q), columns.of(block.k), columns.of(block.v), plan.scale, false,
                         {}};
      part.causal = tile.mask == AttentionTile::Mask::diagonal;
      if (tile.mask == AttentionTile::Mask::window)
        part.mask = window_mask(tile, plan.window, q.device());
      work(part, rows, columns);
    }
  };
  if (!plan.documents || plan.documents->empty()) return run({0, q.size(0)}, {});
  for (std::int64_t b = 0; b < q.size(0); ++b)
    run({b, 1}, (*plan.documents)[static_cast<std::size_t>(b)]);
}

}  // namespace

at::ScalarType sum_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

AttentionSum::AttentionSum(const AttentionPlan& plan, const Tensor& q, std::int64_t value_dim)
    : plan_(plan),
      q_(q),
      out_(at::zeros({q.size(0), q.size(1), q.size(2), value_dim}, q.options().dtype(sum_type(q)))),
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

void AttentionSum::add_sinks(const Tensor& sinks) {
  const Tensor after = at::logaddexp(logsumexp_, sinks.to(logsumexp_.scalar_type()));
  out_.mul_((logsumexp_ - after).exp_().unsqueeze(-1));
  logsumexp_ = after;
}

AttentionValue AttentionSum::value() const { return {out_.to(q_.scalar_type()), logsumexp_}; }

AttentionGradient::AttentionGradient(const AttentionPlan& plan, const Tensor& q,
                                     const AttentionValue& value, const Tensor& grad_out)
    : plan_(plan),
      q_(q),
      grad_out_(grad_out.contiguous()),
      grad_q_(at::zeros(q.sizes(), q.options().dtype(sum_type(q)))),
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

/// A sink's probability is exp(sink - L) and its value 0, so that the gradient of its score is
/// -exp(sink - L) dO O.
Tensor AttentionGradient::sinks(const Tensor& sinks) const {
  const auto type = sum_type(q_);
  const Tensor dot = (grad_out_.to(type) * value_.out.to(type)).sum(-1);
  return ((sinks.to(type) - value_.logsumexp).exp_() * dot)
      .sum(at::IntArrayRef{0, 1})
      .neg_()
      .to(sinks.scalar_type());
}

}  // namespace tessera::parallel
