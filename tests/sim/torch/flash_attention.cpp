// SPDX-License-Identifier: Apache-2.0
// Flash attention has kernels for CUDA and others for the host, under other names. These are twins
// of the first made of the second, with the conditions of the first.
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "fallback.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

/// Tensors are [batch, heads, positions, head_dim].
void expect_supported(const Tensor& q, const Tensor& k, const Tensor& v, double dropout,
                      bool causal) {
  TORCH_CHECK(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
              "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
              "query, key and value must have the same dtype");
  for (const Tensor& x : {q, k, v})
    TORCH_CHECK(x.stride(-1) == 1, "Input tensor must have contiguous last dimension");
  TORCH_CHECK(q.size(3) == v.size(3) && q.size(3) % 8 == 0 && q.size(3) <= 256,
              "FlashAttention only supports head dimensions that are multiples of 8, up to 256");
  TORCH_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0,
              "Number of heads in key/value must divide number of heads in query");
  TORCH_CHECK(dropout == 0, "the simulated flash attention has no dropout");
  TORCH_CHECK(!causal || q.size(2) == k.size(2),
              "the simulated flash attention is causal for as many keys as queries only");
}

/// A key-value head for each query head.
Tensor for_all_heads(const Tensor& x, std::int64_t heads) {
  return x.repeat_interleave(heads / x.size(1), 1);
}

/// Gradients of a GPU's kernel lie position by position.
Tensor by_position(const Tensor& gradient) {
  return gradient.transpose(1, 2).contiguous().transpose(1, 2);
}

/// The sum over the query heads that share a key-value head.
Tensor for_key_heads(const Tensor& gradient, std::int64_t heads) {
  if (gradient.size(1) == heads) return gradient;
  return gradient.unflatten(1, {heads, gradient.size(1) / heads})
      .to(at::kFloat)
      .sum(2)
      .to(gradient.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> flash(
    const Tensor& q, const Tensor& k, const Tensor& v, double dropout, bool causal,
    bool return_debug_mask, std::optional<double> scale) {
  expect_supported(q, k, v, dropout, causal);
  const auto results = run_on_host(
      "aten::_scaled_dot_product_flash_attention", {q, k, v}, [causal, scale](const auto& in) {
        const std::int64_t heads = in[0].size(1);
        const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
            in[0], for_all_heads(in[1], heads), for_all_heads(in[2], heads), 0.0, causal, {},
            scale);
        return std::vector<Tensor>{out, logsumexp.to(at::kFloat).contiguous()};
      });
  const Tensor state = at::empty({0}, q.options().dtype(at::kLong));
  return {results[0], results[1], Tensor(), Tensor(), q.size(2), k.size(2), state, state, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double dropout,
    bool causal, const Tensor&, const Tensor&, std::optional<double> scale) {
  if (!grad.defined()) return {};
  expect_supported(q, k, v, dropout, causal);
  TORCH_CHECK(logsumexp.is_contiguous() && logsumexp.scalar_type() == at::kFloat,
              "logsumexp must be contiguous and float32");
  const auto results = run_on_host(
      "aten::_scaled_dot_product_flash_attention_backward", {grad, q, k, v, out, logsumexp},
      [causal, scale](const auto& in) {
        const std::int64_t heads = in[1].size(1), key_heads = in[2].size(1);
        const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            in[0], in[1], for_all_heads(in[2], heads), for_all_heads(in[3], heads), in[4], in[5],
            0.0, causal, {}, scale);
        return std::vector<Tensor>{by_position(dq), by_position(for_key_heads(dk, key_heads)),
                                   by_position(for_key_heads(dv, key_heads))};
      });
  return {results[0], results[1], results[2]};
}

/// Which kernel scaled_dot_product_attention takes: this one where LibTorch takes it or cuDNN's,
/// and otherwise products and a softmax.
std::int64_t choose(const Tensor& q, const Tensor& k, const Tensor& v,
                    const std::optional<Tensor>& mask, double dropout, bool causal,
                    std::optional<double>, bool grouped) {
  const bool masked = mask.has_value() && mask->defined();
  const bool halves = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  const bool flash = halves && !masked && dropout == 0 && q.size(3) == v.size(3) &&
                     q.size(3) <= 256 && (!causal || q.size(2) == k.size(2)) &&
                     (grouped || q.size(1) == k.size(1));
  return static_cast<std::int64_t>(flash ? at::SDPBackend::flash_attention : at::SDPBackend::math);
}

const at::native::RegisterCUDADispatch<at::native::_fused_sdp_choice_stub_DECLARE_DISPATCH_type>
    choice(at::native::_fused_sdp_choice_stub, &choose);

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("_fused_sdp_choice", &choose);
  m.impl("_scaled_dot_product_flash_attention", &flash);
  m.impl("_scaled_dot_product_flash_attention_backward", &flash_backward);
}

}  // namespace
}  // namespace tessera::sim
