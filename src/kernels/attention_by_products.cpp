// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/attention_part.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

constexpr std::int64_t kScores = std::int64_t{1} << 22;  ///< held at a time: 16 MiB in float32

/// [B, S, H, d] -> [B, Hkv, H / Hkv, S, d]: query heads next to their key-value head.
Tensor by_groups(const Tensor& x, std::int64_t kv_heads) {
  return x.unflatten(2, {kv_heads, -1}).permute({0, 2, 3, 1, 4}).to(accumulation_type(x));
}

/// And back.
Tensor by_positions(const Tensor& x) { return x.permute({0, 3, 1, 2, 4}).flatten(2, 3); }

/// A run of queries and what they need of a part, in the type that is summed in.
class Rows {
 public:
  Rows(const AttentionPart& part, std::int64_t begin, std::int64_t size)
      : part_(part), begin_(begin), size_(size) {}

  Tensor of(const Tensor& x) const {
    return by_groups(x.narrow(1, begin_, size_), part_.k.size(2));
  }
  /// [B, Hkv, H / Hkv, rows, Sk]; what is hidden is -infinity.
  Tensor scores(const Tensor& q, const Tensor& keys) const {
    Tensor scores = at::matmul(q, keys.transpose(-1, -2)).mul_(part_.scale);
    if (part_.mask.defined())
      scores.masked_fill_(part_.mask.narrow(0, begin_, size_).logical_not(), -HUGE_VAL);
    if (part_.causal) {
      const auto options = at::TensorOptions(at::kLong).device(q.device());
      const Tensor row = at::arange(begin_, begin_ + size_, options).unsqueeze(1);
      scores.masked_fill_(at::arange(scores.size(-1), options).unsqueeze(0) > row, -HUGE_VAL);
    }
    return scores;
  }

 private:
  const AttentionPart& part_;
  std::int64_t begin_, size_;
};

template <class Work>
void for_rows(const AttentionPart& part, Work work) {
  const std::int64_t a_row = part.q.size(0) * part.q.size(2) * part.k.size(1);
  const std::int64_t rows = std::max<std::int64_t>(1, kScores / std::max<std::int64_t>(1, a_row));
  for (std::int64_t begin = 0; begin < part.q.size(1); begin += rows)
    work(begin, std::min(rows, part.q.size(1) - begin));
}

}  // namespace

AttentionValue attention_part_by_products(const AttentionPart& part) {
  const Tensor keys = by_groups(part.k, part.k.size(2)), values = by_groups(part.v, part.k.size(2));
  std::vector<Tensor> out, logsumexp;
  for_rows(part, [&](std::int64_t begin, std::int64_t size) {
    const Rows rows(part, begin, size);
    const Tensor scores = rows.scores(rows.of(part.q), keys);
    const Tensor log = at::logsumexp(scores, -1, true);
    out.push_back(by_positions(at::matmul((scores - log).exp_(), values)).to(part.q.scalar_type()));
    logsumexp.push_back(by_positions(log).squeeze(-1));
  });
  return {at::cat(out, 1), at::cat(logsumexp, 1)};
}

AttentionGradients attention_part_by_products_backward(const AttentionPart& part,
                                                       const AttentionValue& merged,
                                                       const Tensor& grad_out) {
  const Tensor keys = by_groups(part.k, part.k.size(2)), values = by_groups(part.v, part.k.size(2));
  Tensor grad_keys = at::zeros_like(keys), grad_values = at::zeros_like(values);
  std::vector<Tensor> grad_q;
  for_rows(part, [&](std::int64_t begin, std::int64_t size) {
    const Rows rows(part, begin, size);
    const Tensor q = rows.of(part.q), grad = rows.of(grad_out),
                 log = rows.of(merged.logsumexp.unsqueeze(-1));
    const Tensor probabilities = (rows.scores(q, keys) - log).exp_();
    const Tensor dot = (grad * rows.of(merged.out)).sum(-1, true);
    const Tensor grad_scores =
        (at::matmul(grad, values.transpose(-1, -2)) - dot).mul_(probabilities).mul_(part.scale);
    grad_values += at::matmul(probabilities.transpose(-1, -2), grad).sum(2, true);
    grad_keys += at::matmul(grad_scores.transpose(-1, -2), q).sum(2, true);
    grad_q.push_back(by_positions(at::matmul(grad_scores, keys)).to(part.q.scalar_type()));
  });
  const auto type = part.k.scalar_type();
  return {at::cat(grad_q, 1), by_positions(grad_keys).to(type), by_positions(grad_values).to(type)};
}

}  // namespace tessera::kernels
