// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU: LibTorch's flash attention for half types where its shapes allow, else by
// products.
#include "cuda/device_attention.hpp"

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>

#include "flash_shapes.hpp"

namespace tessera::kernels::device {
namespace {

using at::Tensor;

Tensor heads_first(const Tensor& x) { return x.transpose(1, 2); }

AttentionValue flash(const AttentionPart& part) {
  const auto result = at::_scaled_dot_product_flash_attention(
      heads_first(part.q), heads_first(part.k), heads_first(part.v), 0.0, part.causal, false,
      part.scale);
  return {heads_first(std::get<0>(result)), heads_first(std::get<1>(result))};
}

AttentionGradients flash_backward(const AttentionPart& part, const AttentionValue& merged,
                                  const Tensor& grad_out) {
  // no dropout: no state of it
  const Tensor none = at::empty({0}, part.q.options().dtype(at::kLong));
  const auto [q, k, v] = at::_scaled_dot_product_flash_attention_backward(
      heads_first(grad_out), heads_first(part.q), heads_first(part.k), heads_first(part.v),
      heads_first(merged.out), heads_first(merged.logsumexp).contiguous(), Tensor(), Tensor(),
      part.q.size(1), part.k.size(1), 0.0, part.causal, none, none, part.scale);
  return {heads_first(q), heads_first(k), heads_first(v)};
}

}  // namespace

AttentionValue attention_part(const AttentionPart& part) {
  return in_flash(part) ? flash(part) : attention_part_by_products(part);
}

AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const Tensor& grad_out) {
  return in_flash(part) ? flash_backward(part, merged, grad_out)
                        : attention_part_by_products_backward(part, merged, grad_out);
}

}  // namespace tessera::kernels::device
