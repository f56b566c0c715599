// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU: cuDNN's or LibTorch's flash attention for half types, else by products.
//
// Tensors of LibTorch's kernel are [B, S, H, d], or [positions, H, d] where the batch is cut into
// segments. Those of cuDNN's are [B, H, S, d], with any strides.
#include "device_attention.hpp"

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>

namespace tessera::kernels::device {
namespace {

using at::Tensor;

constexpr std::int64_t kWidest = 256;       ///< heads of the kernel
constexpr std::int64_t kCudnnWidest = 128;  ///< with a backward pass, on every GPU
constexpr std::int64_t kStep = 8;  ///< its loads are of 8 half elements, which are 16 bytes

/// Of the heads that the kernel sees: it has one width for keys and values. Zeros behind either
/// change neither scores nor the values before them.
std::int64_t width_of(const AttentionPart& part) {
  const std::int64_t widest = std::max(part.q.size(3), part.v.size(3));
  return (widest + kStep - 1) / kStep * kStep;
}

bool loads_whole_steps(const Tensor& x) {
  const auto strides = x.strides().slice(0, 3);
  return x.stride(3) == 1 && x.storage_offset() % kStep == 0 &&
         std::ranges::all_of(strides, [](std::int64_t stride) { return stride % kStep == 0; });
}

/// What the kernel reads of a tensor of the part.
Tensor operand(const AttentionPart& part, const Tensor& x) {
  const std::int64_t lacking = width_of(part) - x.size(3);
  const Tensor whole = lacking > 0            ? at::constant_pad_nd(x, {0, lacking})
                       : loads_whole_steps(x) ? x
                                              : x.clone(at::MemoryFormat::Contiguous);
  return part.segments.begins.defined() ? whole.flatten(0, 1) : whole;
}

/// What the kernel wrote, `width` elements wide.
Tensor result(const AttentionPart& part, const Tensor& x, std::int64_t width) {
  const Tensor whole = part.segments.begins.defined() ? x.unflatten(0, {part.q.size(0), -1}) : x;
  return whole.narrow(3, 0, width);
}

/// [B, H, S], or [H, positions], and back to [B, S, H].
Tensor kernel_logsumexp(const AttentionPart& part, const Tensor& x) {
  return (part.segments.begins.defined() ? x.flatten(0, 1).t() : x.transpose(1, 2)).contiguous();
}
Tensor part_logsumexp(const AttentionPart& part, const Tensor& x) {
  return part.segments.begins.defined() ? x.t().unflatten(0, {part.q.size(0), -1})
                                        : x.transpose(1, 2);
}

std::optional<std::int64_t> bound(std::int64_t keys) {
  return keys < 0 ? std::nullopt : std::optional(keys);
}

std::int64_t longest(const AttentionPart& part, const Tensor& x) {
  return part.segments.begins.defined() ? part.segments.longest : x.size(1);
}

AttentionValue flash(const AttentionPart& part) {
  const auto& begins = part.segments.begins;
  const auto cuts = begins.defined() ? std::optional(begins) : std::nullopt;
  const auto results = at::_flash_attention_forward(
      operand(part, part.q), operand(part, part.k), operand(part, part.v), cuts, cuts,
      longest(part, part.q), longest(part, part.k), 0.0, part.causal, false, part.scale,
      bound(part.band.left), bound(part.band.right));
  return {result(part, std::get<0>(results), part.v.size(3)).contiguous(),
          part_logsumexp(part, std::get<1>(results))};
}

AttentionGradients flash_backward(const AttentionPart& part, const AttentionValue& merged,
                                  const Tensor& grad_out) {
  // no dropout: no state of it
  const Tensor none = at::empty({0}, part.q.options().dtype(at::kLong));
  const auto [q, k, v] = at::_flash_attention_backward(
      operand(part, grad_out), operand(part, part.q), operand(part, part.k), operand(part, part.v),
      operand(part, merged.out), kernel_logsumexp(part, merged.logsumexp), part.segments.begins,
      part.segments.begins, longest(part, part.q), longest(part, part.k), 0.0, part.causal, none,
      none, part.scale, bound(part.band.left), bound(part.band.right));
  return {result(part, q, part.q.size(3)), result(part, k, part.k.size(3)),
          result(part, v, part.v.size(3))};
}

bool in_flash(const AttentionPart& part) {
  return device::attends_in_bands(part) && !part.mask.defined();
}

/// A band up to the diagonal is causality where there are as many keys as queries.
AttentionPart with_causality(AttentionPart part) {
  if (part.band.left < 0 && part.band.right == 0 && part.q.size(1) == part.k.size(1)) {
    part.causal = true;
    part.band = {};
  }
  return part;
}

/// cuDNN knows neither windows nor runs. Where LibTorch would take it, it is about twice as fast as
/// LibTorch's own kernel.
bool in_cudnn(const AttentionPart& part) {
  return part.q.is_cuda() && in_flash(part) && width_of(part) <= kCudnnWidest &&
         part.band.left < 0 && part.band.right < 0 && !part.segments.begins.defined() &&
         library_kernel(part) == at::SDPBackend::cudnn_attention;
}

Tensor cudnn_operand(const Tensor& x) {
  return (loads_whole_steps(x) ? x : x.clone(at::MemoryFormat::Contiguous)).transpose(1, 2);
}

AttentionValue cudnn(const AttentionPart& part) {
  const auto results = at::_scaled_dot_product_cudnn_attention(
      cudnn_operand(part.q), cudnn_operand(part.k), cudnn_operand(part.v), std::nullopt,
      /*compute_log_sumexp=*/true, 0.0, part.causal, false, part.scale);
  return {std::get<0>(results).transpose(1, 2).contiguous(),
          part_logsumexp(part, std::get<1>(results).flatten(2))};  // of [B, H, S, 1]
}

AttentionGradients cudnn_backward(const AttentionPart& part, const AttentionValue& merged,
                                  const Tensor& grad_out) {
  const Tensor none = at::empty({}, part.q.options().dtype(at::kLong));  // no dropout: no state
  const auto [q, k, v] = at::_scaled_dot_product_cudnn_attention_backward(
      grad_out.contiguous().transpose(1, 2), cudnn_operand(part.q), cudnn_operand(part.k),
      cudnn_operand(part.v), merged.out.contiguous().transpose(1, 2),
      kernel_logsumexp(part, merged.logsumexp).unsqueeze(3), none, none, Tensor(), Tensor(),
      Tensor(), part.q.size(1), part.k.size(1), 0.0, part.causal, part.scale);
  return {q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)};
}

}  // namespace

bool attends_in_bands(const AttentionPart& part) {
  const bool half = part.q.scalar_type() == at::kBFloat16 || part.q.scalar_type() == at::kHalf;
  return half && width_of(part) <= kWidest;
}

AttentionValue attention_part(const AttentionPart& asked) {
  const AttentionPart part = with_causality(asked);
  if (in_cudnn(part)) return cudnn(part);
  return in_flash(part) ? flash(part) : attention_part_by_products(part);
}

AttentionGradients attention_part_backward(const AttentionPart& asked, const AttentionValue& merged,
                                           const Tensor& grad_out) {
  const AttentionPart part = with_causality(asked);
  if (in_cudnn(part)) return cudnn_backward(part, merged, grad_out);
  return in_flash(part) ? flash_backward(part, merged, grad_out)
                        : attention_part_by_products_backward(part, merged, grad_out);
}

}  // namespace tessera::kernels::device
