// SPDX-License-Identifier: Apache-2.0
// Attention on the host: by own loops where the processor has them, else by LibTorch's flash
// attention where its shapes allow, else by products.
#include "host/attention.hpp"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include "host/attention_in_rows.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "widening.hpp"

namespace tessera::kernels::host {
namespace {

using at::Tensor;

/// Flash attention on the host wants as many key-value heads as query heads. Taking [sequence,
/// key-value head] as the batch makes them so without a copy: a key-value head is then all heads of
/// its element, with stride 0.
struct HostShapes {
  explicit HostShapes(const AttentionPart& part)
      : batch(part.q.size(0)), kv_heads(part.k.size(2)), group(part.q.size(2) / kv_heads) {}
  std::int64_t batch, kv_heads, group;

  /// [B, S, H, d] -> [B Hkv, H / Hkv, S, d], or [B, H, S, d] where each query head has its own
  /// keys.
  Tensor queries(const Tensor& x) const {
    if (group == 1) return x.transpose(1, 2);
    return x.unflatten(2, {kv_heads, group}).permute({0, 2, 3, 1, 4}).flatten(0, 1);
  }
  Tensor keys(const Tensor& x) const {
    if (group == 1) return x.transpose(1, 2);
    return x.permute({0, 2, 1, 3}).flatten(0, 1).unsqueeze(1).expand({-1, group, -1, -1});
  }
  /// Back to [B, S, H, d].
  Tensor positions(const Tensor& x) const {
    if (group == 1) return x.transpose(1, 2);
    return x.unflatten(0, {batch, kv_heads}).permute({0, 3, 1, 2, 4}).flatten(2, 3);
  }
  Tensor key_gradient(const Tensor& x) const {
    if (group == 1) return x.transpose(1, 2);
    return x.sum(1).unflatten(0, {batch, kv_heads}).transpose(1, 2);
  }
};

/// What is added to scores, in the type that flash attention on the host wants.
std::optional<Tensor> bias_of(const AttentionPart& part) {
  if (!part.mask.defined()) return std::nullopt;
  return at::zeros_like(part.mask, part.q.options())
      .masked_fill_(part.mask.logical_not(), -HUGE_VAL);
}

AttentionValue flash(const AttentionPart& part) {
  const HostShapes shapes(part);
  const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      shapes.queries(part.q), shapes.keys(part.k), shapes.keys(part.v), 0.0, part.causal,
      bias_of(part), part.scale);
  return {shapes.positions(out), shapes.positions(logsumexp.unsqueeze(-1)).squeeze(-1)};
}

AttentionGradients flash_backward(const AttentionPart& part, const AttentionValue& merged,
                                  const Tensor& grad_out) {
  const HostShapes shapes(part);
  const Tensor log = shapes.queries(merged.logsumexp.unsqueeze(-1)).squeeze(-1);
  const auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      shapes.queries(grad_out), shapes.queries(part.q), shapes.keys(part.k), shapes.keys(part.v),
      shapes.queries(merged.out), log, 0.0, part.causal, bias_of(part), part.scale);
  return {shapes.positions(q), shapes.key_gradient(k), shapes.key_gradient(v)};
}

AttentionPart widened_part(AttentionPart part) {
  for (Tensor* x : {&part.q, &part.k, &part.v}) *x = widened(*x);
  return part;
}

AttentionValue flash_widened(const AttentionPart& part) {
  const auto [out, logsumexp] = flash(widened_part(part));
  return {narrowed(out), logsumexp};
}

AttentionGradients flash_widened_backward(const AttentionPart& part, const AttentionValue& merged,
                                          const Tensor& grad_out) {
  const auto [q, k, v] = flash_backward(widened_part(part), {widened(merged.out), merged.logsumexp},
                                        widened(grad_out));
  return {narrowed(q), narrowed(k), narrowed(v)};
}

/// Flash attention wants values as wide as keys.
bool in_flash(const AttentionPart& part) { return part.q.size(3) == part.v.size(3); }

AttentionValue by_library(const AttentionPart& part) {
  if (!in_flash(part)) return attention_part_by_products(part);
  return widens(part.q) ? flash_widened(part) : flash(part);
}

AttentionGradients by_library_backward(const AttentionPart& part, const AttentionValue& merged,
                                       const Tensor& grad_out) {
  if (!in_flash(part)) return attention_part_by_products_backward(part, merged, grad_out);
  return widens(part.q) ? flash_widened_backward(part, merged, grad_out)
                        : flash_backward(part, merged, grad_out);
}

/// LibTorch multiplies bfloat16 where the processor does. From this width on, that gains more than
/// its blocks lose.
constexpr std::int64_t kWideHead = 128;

bool library_is_faster(const AttentionPart& part) {
  return part.q.scalar_type() == at::kBFloat16 && !widens(part.q) && in_flash(part) &&
         part.q.size(3) >= kWideHead && !part.mask.defined();
}

}  // namespace

AttentionValue attention_part(const AttentionPart& part) {
  return has_attention_rows() ? attention_in_rows(part) : by_library(part);
}

AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const Tensor& grad_out) {
  return has_attention_rows() && !library_is_faster(part)
             ? attention_in_rows_backward(part, merged, grad_out)
             : by_library_backward(part, merged, grad_out);
}

}  // namespace tessera::kernels::host
