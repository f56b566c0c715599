// SPDX-License-Identifier: Apache-2.0
// Flash attention has kernels for CUDA, LibTorch's and cuDNN's, and others for the host, under
// other names. These are twins of the first made of the second, with the conditions of the first.
#include <ATen/Context.h>
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

using Results =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;
using Gradients = std::tuple<Tensor, Tensor, Tensor>;

/// Output and logsumexp [batch, heads, positions] of the operator `name`.
std::vector<Tensor> attend(const char* name, const Tensor& q, const Tensor& k, const Tensor& v,
                           bool causal, std::optional<double> scale) {
  return run_on_host(name, {q, k, v}, [causal, scale](const auto& in) {
    const std::int64_t heads = in[0].size(1);
    const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
        in[0], for_all_heads(in[1], heads), for_all_heads(in[2], heads), 0.0, causal, {}, scale);
    return std::vector<Tensor>{out, logsumexp.to(at::kFloat).contiguous()};
  });
}

Results flash(const Tensor& q, const Tensor& k, const Tensor& v, double dropout, bool causal,
              bool return_debug_mask, std::optional<double> scale) {
  expect_supported(q, k, v, dropout, causal);
  const auto results = attend("aten::_scaled_dot_product_flash_attention", q, k, v, causal, scale);
  const Tensor state = at::empty({0}, q.options().dtype(at::kLong));
  return {results[0], results[1], Tensor(), Tensor(), q.size(2), k.size(2), state, state, Tensor()};
}

/// cuDNN knows heads up to 128 wide, and gives logsumexp a last dimension of 1.
Results cudnn(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& bias,
              bool with_logsumexp, double dropout, bool causal, bool return_debug_mask,
              std::optional<double> scale) {
  expect_supported(q, k, v, dropout, causal);
  TORCH_CHECK(q.size(3) <= 128, "the simulated cuDNN attention has heads of at most 128");
  TORCH_CHECK(!bias.has_value() || !bias->defined(), "the simulated cuDNN attention has no bias");
  const auto results = attend("aten::_scaled_dot_product_cudnn_attention", q, k, v, causal, scale);
  const Tensor state = at::empty({}, q.options().dtype(at::kLong));
  const Tensor logsumexp =
      with_logsumexp ? results[1].unsqueeze(3) : at::empty({0}, results[1].options());
  return {results[0], logsumexp, Tensor(), Tensor(), q.size(2), k.size(2), state, state, Tensor()};
}

/// By the operator `name`, for logsumexp [batch, heads, positions].
Gradients attend_backward(const char* name, const Tensor& grad, const Tensor& q, const Tensor& k,
                          const Tensor& v, const Tensor& out, const Tensor& logsumexp, bool causal,
                          std::optional<double> scale) {
  TORCH_CHECK(logsumexp.is_contiguous() && logsumexp.scalar_type() == at::kFloat,
              "logsumexp must be contiguous and float32");
  const auto results =
      run_on_host(name, {grad, q, k, v, out, logsumexp}, [causal, scale](const auto& in) {
        const std::int64_t heads = in[1].size(1), key_heads = in[2].size(1);
        const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            in[0], in[1], for_all_heads(in[2], heads), for_all_heads(in[3], heads), in[4], in[5],
            0.0, causal, {}, scale);
        return std::vector<Tensor>{by_position(dq), by_position(for_key_heads(dk, key_heads)),
                                   by_position(for_key_heads(dv, key_heads))};
      });
  return {results[0], results[1], results[2]};
}

Gradients flash_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&,
                         c10::SymInt, c10::SymInt, double dropout, bool causal, const Tensor&,
                         const Tensor&, std::optional<double> scale) {
  if (!grad.defined()) return {};
  expect_supported(q, k, v, dropout, causal);
  return attend_backward("aten::_scaled_dot_product_flash_attention_backward", grad, q, k, v, out,
                         logsumexp, causal, scale);
}

/// cuDNN's plan has the shape of logsumexp, and one layout for the output and its gradient.
Gradients cudnn_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&,
                         const Tensor& bias, const Tensor&, const Tensor&, c10::SymInt max_q,
                         c10::SymInt max_k, double dropout, bool causal,
                         std::optional<double> scale) {
  if (!grad.defined()) return {};
  expect_supported(q, k, v, dropout, causal);
  TORCH_CHECK(!bias.defined(), "the simulated cuDNN attention has no bias");
  TORCH_CHECK(max_q == q.size(2) && max_k == k.size(2), "max_q and max_k must be the positions");
  TORCH_CHECK(logsumexp.dim() == 4 && logsumexp.size(3) == 1,
              "logsumexp must have shape (batch, heads, positions, 1)");
  TORCH_CHECK(grad.strides() == out.strides(), "grad_out must have the strides of out");
  return attend_backward("aten::_scaled_dot_product_cudnn_attention_backward", grad, q, k, v, out,
                         logsumexp.squeeze(3), causal, scale);
}

/// Which kernel scaled_dot_product_attention takes, as on an H100: cuDNN's before LibTorch's,
/// unless results must be deterministic, and otherwise products and a softmax.
std::int64_t choose(const Tensor& q, const Tensor& k, const Tensor& v,
                    const std::optional<Tensor>& mask, double dropout, bool causal,
                    std::optional<double>, bool grouped) {
  const bool masked = mask.has_value() && mask->defined();
  const bool halves = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  const bool flash = halves && !masked && dropout == 0 && q.size(3) == v.size(3) &&
                     q.size(3) <= 256 && (!causal || q.size(2) == k.size(2)) &&
                     (grouped || q.size(1) == k.size(1));
  const bool cudnn = flash && q.size(3) <= 128 && q.size(3) % 8 == 0 &&
                     !at::globalContext().deterministicAlgorithms();
  return static_cast<std::int64_t>(cudnn   ? at::SDPBackend::cudnn_attention
                                   : flash ? at::SDPBackend::flash_attention
                                           : at::SDPBackend::math);
}

const at::native::RegisterCUDADispatch<at::native::_fused_sdp_choice_stub_DECLARE_DISPATCH_type>
    choice(at::native::_fused_sdp_choice_stub, &choose);

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("_fused_sdp_choice", &choose);
  m.impl("_scaled_dot_product_cudnn_attention", &cudnn);
  m.impl("_scaled_dot_product_cudnn_attention_backward", &cudnn_backward);
  m.impl("_scaled_dot_product_flash_attention", &flash);
  m.impl("_scaled_dot_product_flash_attention_backward", &flash_backward);
}

}  // namespace
}  // namespace tessera::sim
