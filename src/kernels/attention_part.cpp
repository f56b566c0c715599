#include "tessera/kernels/attention_part.hpp"

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include "tessera/base/error.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "widening.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Flash attention on the host wants as many key-value heads as query heads. Taking [sequence, key-value head] as the
/// batch makes them so without a copy: a key-value head is then all heads of its element, with stride 0.
struct HostShapes {
  explicit HostShapes(const AttentionPart& part)
      : batch(part.q.size(0)), kv_heads(part.k.size(2)), group(part.q.size(2) / kv_heads) {}
  std::int64_t batch, kv_heads, group;

  /// [B, S, H, d] -> [B Hkv, H / Hkv, S, d], or [B, H, S, d] where each query head has its own keys.
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
  return at::zeros_like(part.mask, part.q.options()).masked_fill_(part.mask.logical_not(), -HUGE_VAL);
}

AttentionValue on_host(const AttentionPart& part) {
  const HostShapes shapes(part);
  const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      shapes.queries(part.q), shapes.keys(part.k), shapes.keys(part.v), 0.0, part.causal, bias_of(part), part.scale);
  return {shapes.positions(out), shapes.positions(logsumexp.unsqueeze(-1)).squeeze(-1)};
}

AttentionGradients on_host_backward(const AttentionPart& part, const AttentionValue& merged, const Tensor& grad_out) {
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

AttentionValue on_host_widened(const AttentionPart& part) {
  const auto [out, logsumexp] = on_host(widened_part(part));
  return {narrowed(out), logsumexp};
}

AttentionGradients on_host_widened_backward(const AttentionPart& part, const AttentionValue& merged,
                                            const Tensor& grad_out) {
  const auto [q, k, v] =
      on_host_backward(widened_part(part), {widened(merged.out), merged.logsumexp}, widened(grad_out));
  return {narrowed(q), narrowed(k), narrowed(v)};
}

Tensor heads_first(const Tensor& x) { return x.transpose(1, 2); }

AttentionValue on_device(const AttentionPart& part) {
  const auto result = at::_scaled_dot_product_flash_attention(heads_first(part.q), heads_first(part.k),
                                                              heads_first(part.v), 0.0, part.causal, false, part.scale);
  return {heads_first(std::get<0>(result)), heads_first(std::get<1>(result))};
}

AttentionGradients on_device_backward(const AttentionPart& part, const AttentionValue& merged, const Tensor& grad_out) {
  const Tensor none = at::empty({0}, part.q.options().dtype(at::kLong));  // no dropout: no state of it
  const auto [q, k, v] = at::_scaled_dot_product_flash_attention_backward(
      heads_first(grad_out), heads_first(part.q), heads_first(part.k), heads_first(part.v), heads_first(merged.out),
      heads_first(merged.logsumexp).contiguous(), Tensor(), Tensor(), part.q.size(1), part.k.size(1), 0.0, part.causal,
      none, none, part.scale);
  return {heads_first(q), heads_first(k), heads_first(v)};
}

bool flash_on_host(const AttentionPart& part) { return part.q.is_cpu() && part.q.size(3) == part.v.size(3); }

bool flash_on_device(const AttentionPart& part) {
  const bool half = part.q.scalar_type() == at::kBFloat16 || part.q.scalar_type() == at::kHalf;
  const std::int64_t head = part.q.size(3);
  return part.q.is_cuda() && half && head == part.v.size(3) && head % 8 == 0 && head <= 256 && !part.mask.defined();
}

/// Of q, k and v; `part_` has the rest.
class WholeAttention final : public Operation {
 public:
  explicit WholeAttention(const AttentionPart& part)
      : part_{.scale = part.scale, .causal = part.causal, .mask = part.mask} {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const auto [out, logsumexp] = attention_part(with(inputs));
    kept.save({inputs[0], inputs[1], inputs[2], out, logsumexp});
    return {out};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const auto [q, k, v] = attention_part_backward(with(saved), {saved[3], saved[4]}, gradients[0]);
    return {q, k, v};
  }

 private:
  AttentionPart with(std::span<const Tensor> inputs) const {
    AttentionPart part = part_;
    part.q = inputs[0];
    part.k = inputs[1];
    part.v = inputs[2];
    return part;
  }

  AttentionPart part_;
};

}  // namespace

Tensor attention(const AttentionPart& part) { return apply(WholeAttention(part), {part.q, part.k, part.v}); }

AttentionValue attention_part(const AttentionPart& part) {
  at::NoGradGuard no_grad;
  if (flash_on_host(part)) return widens(part.q) ? on_host_widened(part) : on_host(part);
  return flash_on_device(part) ? on_device(part) : attention_part_by_products(part);
}

AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const Tensor& grad_out) {
  at::NoGradGuard no_grad;
  if (flash_on_host(part))
    return widens(part.q) ? on_host_widened_backward(part, merged, grad_out) : on_host_backward(part, merged, grad_out);
  return flash_on_device(part) ? on_device_backward(part, merged, grad_out)
                               : attention_part_by_products_backward(part, merged, grad_out);
}

}  // namespace tessera::kernels
