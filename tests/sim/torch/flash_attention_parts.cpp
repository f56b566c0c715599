// SPDX-License-Identifier: Apache-2.0
// LibTorch's flash attention with windows and runs of any length: its conditions, and its results
// by products in float32. Tensors are [batch, positions, heads, head_dim], or [positions, heads,
// head_dim] with the begins of runs.
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cmath>

#include "fallback.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;
using Bound = std::optional<c10::SymInt>;

struct FlashCall {
  std::int64_t max_q, max_k;
  bool causal;
  double scale;
  std::int64_t left, right;  ///< -1: no bound

  FlashCall(const Tensor& q, std::int64_t queries, std::int64_t keys, bool is_causal,
            std::optional<double> given_scale, const Bound& left_bound, const Bound& right_bound)
      : max_q(queries),
        max_k(keys),
        causal(is_causal),
        scale(given_scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))))),
        left(left_bound ? left_bound->expect_int() : -1),
        right(right_bound ? right_bound->expect_int() : -1) {
    if (causal && queries > 1) right = 0;
  }
};

void expect_operand(const Tensor& x, const Tensor& q) {
  TORCH_CHECK(x.is_cuda() && x.scalar_type() == q.scalar_type(),
              "query, key and value must have the same dtype");
  TORCH_CHECK(x.stride(-1) == 1, "Input tensor must have contiguous last dimension");
  TORCH_CHECK(reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0, "misaligned address");
  for (std::int64_t dim = 0; dim + 1 < x.dim(); ++dim)
    TORCH_CHECK(x.size(dim) == 1 || x.stride(dim) % 8 == 0, "misaligned address");
}

void expect_taken(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& begins_q,
                  const Tensor& begins_k, double dropout) {
  TORCH_CHECK(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
              "FlashAttention only support fp16 and bf16 data type");
  for (const Tensor& x : {q, k, v}) expect_operand(x, q);
  TORCH_CHECK(q.size(-1) % 8 == 0, "head_size must be a multiple of 8");
  TORCH_CHECK(q.size(-1) <= 256, "FlashAttention only supports head dimension at most 256");
  TORCH_CHECK(k.size(-2) > 0 && q.size(-2) % k.size(-2) == 0,
              "Number of heads in key/value must divide number of heads in query");
  TORCH_CHECK(dropout == 0, "the simulated flash attention has no dropout");
  TORCH_CHECK(begins_q.defined() == begins_k.defined(),
              "cumulative_sequence_length_q and cumulative_sequence_length_k must be both set or "
              "both not set");
  const std::int64_t dims = begins_q.defined() ? 3 : 4;
  TORCH_CHECK(q.dim() == dims && k.dim() == dims, "query must have ", dims, " dimensions");
  TORCH_CHECK(k.sizes() == v.sizes() && k.size(-1) == q.size(-1), "v must have shape of k");
  if (!begins_q.defined()) {
    TORCH_CHECK(k.size(0) == q.size(0), "k must have shape (batch_size, ...)");
    return;
  }
  for (const Tensor& begins : {begins_q, begins_k})
    TORCH_CHECK(begins.is_cuda() && begins.scalar_type() == at::kInt && begins.is_contiguous() &&
                    begins.dim() == 1 && begins.numel() == begins_q.numel() && begins.numel() > 1,
                "cu_seqlens must have dtype int32, be contiguous and of one length");
}

/// Queries and keys of one run: [positions, heads, head_dim].
struct FlashRun {
  std::int64_t q_begin, queries, k_begin, keys;
  Tensor of_queries(const Tensor& x) const { return x.narrow(0, q_begin, queries); }
  Tensor of_keys(const Tensor& x) const { return x.narrow(0, k_begin, keys); }
};

/// The kernel would read other memory, or leave rows out, where these do not hold.
std::vector<FlashRun> runs_of(const FlashCall& call, const Tensor& begins_q, const Tensor& begins_k,
                              std::int64_t queries, std::int64_t keys) {
  std::vector<FlashRun> runs;
  const auto* const q = begins_q.const_data_ptr<std::int32_t>();
  const auto* const k = begins_k.const_data_ptr<std::int32_t>();
  TORCH_CHECK(q[0] == 0 && k[0] == 0, "the first run begins at ", q[0], " and ", k[0]);
  for (std::int64_t i = 0; i + 1 < begins_q.numel(); ++i) {
    runs.push_back({q[i], q[i + 1] - q[i], k[i], k[i + 1] - k[i]});
    const FlashRun& run = runs.back();
    TORCH_CHECK(run.queries >= 0 && run.queries <= call.max_q && run.keys >= 0 &&
                    run.keys <= call.max_k && q[i + 1] <= queries && k[i + 1] <= keys,
                "run ", i, " has ", run.queries, " queries and ", run.keys, " keys");
  }
  return runs;
}

/// [heads, positions, head_dim] in float32, a key-value head for each query head.
Tensor wide(const Tensor& x, std::int64_t heads) {
  return x.transpose(0, 1).to(at::kFloat).repeat_interleave(heads / x.size(1), 0);
}

/// [heads, queries, keys]; what is hidden is -infinity.
Tensor scores_of(const FlashCall& call, const Tensor& q, const Tensor& k) {
  const Tensor scores = at::matmul(wide(q, q.size(1)), wide(k, q.size(1)).transpose(1, 2));
  const std::int64_t last = k.size(0) - q.size(0);
  const Tensor ahead = at::arange(k.size(0)) - at::arange(q.size(0)).unsqueeze(1) - last;
  Tensor hidden = at::zeros_like(ahead, at::kBool);
  if (call.left >= 0) hidden = hidden.logical_or(ahead < -call.left);
  if (call.right >= 0) hidden = hidden.logical_or(ahead > call.right);
  return scores.mul_(call.scale).masked_fill_(hidden, -HUGE_VAL);
}

/// Rows that see nothing have output 0 and logarithm +infinity.
void forward_run(const FlashCall& call, const Tensor& q, const Tensor& k, const Tensor& v,
                 const Tensor& out, const Tensor& logsumexp) {
  const Tensor scores = scores_of(call, q, k);
  const Tensor log = at::logsumexp(scores, {-1});
  const Tensor kernels_log = log.masked_fill(log.eq(-HUGE_VAL), HUGE_VAL);
  const Tensor probabilities = (scores - kernels_log.unsqueeze(-1)).exp_();
  out.copy_(at::matmul(probabilities, wide(v, q.size(1))).transpose(0, 1));
  logsumexp.copy_(kernels_log);
}

/// The sum over the query heads that share a key-value head.
Tensor summed_for_key_heads(const Tensor& gradient, std::int64_t heads) {
  return gradient.unflatten(0, {heads, -1}).sum(1).transpose(0, 1);
}

struct FlashGradients {
  Tensor q, k, v;
};

void backward_run(const FlashCall& call, const Tensor& grad, const Tensor& q, const Tensor& k,
                  const Tensor& v, const Tensor& out, const Tensor& logsumexp,
                  const FlashGradients& gradients) {
  const std::int64_t heads = q.size(1);
  const Tensor probabilities = (scores_of(call, q, k) - logsumexp.unsqueeze(-1)).exp_(),
               wide_grad = wide(grad, heads);
  const Tensor dot = (wide_grad * wide(out, heads)).sum(-1, true);
  const Tensor of_scores = (at::matmul(wide_grad, wide(v, heads).transpose(1, 2)) - dot)
                               .mul_(probabilities)
                               .mul_(call.scale);
  gradients.q.copy_(at::matmul(of_scores, wide(k, heads)).transpose(0, 1));
  gradients.k.copy_(
      summed_for_key_heads(at::matmul(of_scores.transpose(1, 2), wide(q, heads)), k.size(1)));
  gradients.v.copy_(
      summed_for_key_heads(at::matmul(probabilities.transpose(1, 2), wide_grad), k.size(1)));
}

/// Memory that no run writes is not a number.
Tensor unwritten(const Tensor& like) {
  return at::empty_like(like).fill_(std::numeric_limits<float>::quiet_NaN());
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& begins_q,
    const std::optional<Tensor>& begins_k, c10::SymInt max_q, c10::SymInt max_k, double dropout,
    bool causal, bool return_debug_mask, std::optional<double> scale, Bound left, Bound right,
    const std::optional<Tensor>& used, const std::optional<Tensor>& slopes) {
  const Tensor cut_q = begins_q.value_or(Tensor()), cut_k = begins_k.value_or(Tensor());
  TORCH_CHECK(!used.has_value() && !slopes.has_value() && !return_debug_mask,
              "the simulated flash attention has neither seqused_k, slopes nor a debug mask");
  expect_taken(q, k, v, cut_q, cut_k, dropout);
  const FlashCall call(q, max_q.expect_int(), max_k.expect_int(), causal, scale, left, right);
  std::vector<Tensor> inputs{q, k, v};
  if (cut_q.defined()) inputs.insert(inputs.end(), {cut_q, cut_k});
  const auto results =
      run_on_host("aten::_flash_attention_forward", inputs, [call](const auto& in) {
        const Tensor out = unwritten(in[0]);
        const bool runs = in.size() > 3;
        const Tensor log = unwritten(
            at::empty(runs ? std::vector<std::int64_t>{in[0].size(1), in[0].size(0)}
                           : std::vector<std::int64_t>{in[0].size(0), in[0].size(2), in[0].size(1)},
                      at::kFloat));
        if (!runs)
          for (std::int64_t b = 0; b < in[0].size(0); ++b)
            forward_run(call, in[0][b], in[1][b], in[2][b], out[b], log[b]);
        else
          for (const FlashRun& run : runs_of(call, in[3], in[4], in[0].size(0), in[1].size(0)))
            forward_run(call, run.of_queries(in[0]), run.of_keys(in[1]), run.of_keys(in[2]),
                        run.of_queries(out), log.narrow(1, run.q_begin, run.queries));
        return std::vector<Tensor>{out, log};
      });
  const Tensor state = at::empty({0}, q.options().dtype(at::kLong));
  return {results[0], results[1], state, state, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_run_backward(
    const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, const Tensor& cut_q, const Tensor& cut_k, c10::SymInt max_q,
    c10::SymInt max_k, double dropout, bool causal, const Tensor&, const Tensor&,
    std::optional<double> scale, Bound left, Bound right) {
  expect_taken(q, k, v, cut_q, cut_k, dropout);
  for (const Tensor& x : {grad, out}) {
    expect_operand(x.contiguous(), q);
    TORCH_CHECK(x.sizes() == q.sizes(), "out and dout must have the shape of q");
  }
  const auto log_shape = cut_q.defined()
                             ? std::vector<std::int64_t>{q.size(1), q.size(0)}
                             : std::vector<std::int64_t>{q.size(0), q.size(2), q.size(1)};
  TORCH_CHECK(logsumexp.is_contiguous() && logsumexp.scalar_type() == at::kFloat &&
                  logsumexp.sizes() == log_shape,
              "logsumexp must be contiguous, float32 and of shape ", log_shape);
  const FlashCall call(q, max_q.expect_int(), max_k.expect_int(), causal, scale, left, right);
  std::vector<Tensor> inputs{grad, q, k, v, out, logsumexp};
  if (cut_q.defined()) inputs.insert(inputs.end(), {cut_q, cut_k});
  const auto results =
      run_on_host("aten::_flash_attention_backward", inputs, [call](const auto& in) {
        const FlashGradients all{unwritten(in[1]), unwritten(in[2]), unwritten(in[3])};
        if (in.size() == 6)
          for (std::int64_t b = 0; b < in[1].size(0); ++b)
            backward_run(call, in[0][b], in[1][b], in[2][b], in[3][b], in[4][b], in[5][b],
                         {all.q[b], all.k[b], all.v[b]});
        else
          for (const FlashRun& run : runs_of(call, in[6], in[7], in[1].size(0), in[2].size(0)))
            backward_run(call, run.of_queries(in[0]), run.of_queries(in[1]), run.of_keys(in[2]),
                         run.of_keys(in[3]), run.of_queries(in[4]),
                         in[5].narrow(1, run.q_begin, run.queries),
                         {run.of_queries(all.q), run.of_keys(all.k), run.of_keys(all.v)});
        return std::vector<Tensor>{all.q, all.k, all.v};
      });
  return {results[0], results[1], results[2]};
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("_flash_attention_forward", &flash_forward);
  m.impl("_flash_attention_backward", &flash_run_backward);
}

}  // namespace
}  // namespace tessera::sim
