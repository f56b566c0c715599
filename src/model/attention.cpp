// Grouped-query attention with RoPE: Llama, Qwen3 (norms of heads), Mixtral, gpt-oss (biases, sinks, windows).
#include <cmath>

#include "builder.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

/// Appends this call's keys (values) to the layer's cache and returns all of them.
Tensor remember(Tensor& cached, const Tensor& fresh) {
  cached = cached.defined() ? at::cat({cached, fresh}, 1) : fresh;
  return cached;
}

}  // namespace

void Builder::attention() {
  const std::vector<int> weights = projections();
  cell(name("attention.wqkv"), weights, {tokens_of(Slot::x), tokens_of(Slot::h)}, project(shape_.attention_biases))
      .input = Boundary::gather;
  attend_and_project(shape_.head_dim, shape_.kv_heads, shape_.head_dim);
}

/// wq, wk, wv; then their biases, then the norms of queries and keys, if the model has them.
std::vector<int> Builder::projections() {
  const std::int64_t hd = shape_.head_dim, heads[] = {shape_.heads, shape_.kv_heads, shape_.kv_heads};
  const char* ours[] = {"attention.wq", "attention.wk", "attention.wv"};
  const char* theirs[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  std::vector<int> all;
  for (const bool bias : {false, true}) {
    if (bias && !shape_.attention_biases) break;
    const std::string suffix = bias ? ".bias" : ".weight";
    for (int i = 0; i < 3; ++i) {
      const Shape shape = bias ? Shape{heads[i] * hd} : Shape{heads[i] * hd, shape_.dim};
      all.push_back(matrix(ours[i] + suffix, shape, Placement::column, 0.02, theirs[i] + suffix));
      ParamSpec& spec = model_.params[static_cast<std::size_t>(all.back())];
      if (i < 2) spec.rope_heads = static_cast<int>(heads[i]);
      if (i > 0) spec.max_pieces = static_cast<int>(shape_.kv_heads);
    }
  }
  if (!shape_.qk_norm) return all;
  for (const char* which : {"q_norm", "k_norm"}) {
    all.push_back(ones(fmt::format("attention.{}.weight", which), hd, Placement::shared,
                       fmt::format("self_attn.{}.weight", which)));
    model_.params[static_cast<std::size_t>(all.back())].rope_heads = 1;
  }
  return all;
}

Builder::Forward Builder::project(bool biased) const {
  return [angles = angles_, hd = shape_.head_dim, eps = shape_.norm_eps, biased, normed = shape_.qk_norm](
             Flow& flow, const CellContext& context) {
    std::vector<Tensor> qkv = context.operations->products(flow.take(Slot::h), context.weights.first(3));
    for (std::size_t i = 0; i < 3; ++i) {
      if (biased) qkv[i] = qkv[i] + context.weights[3 + i].value;
      qkv[i] = qkv[i].view({context.batch, -1, qkv[i].size(1) / hd, hd});
    }
    for (std::size_t i = 0; normed && i < 2; ++i)
      qkv[i] = kernels::rms_norm(qkv[i], context.weights[(biased ? 6 : 3) + i].value, eps);
    const std::int64_t positions = qkv[0].size(1);
    const Tensor cos = context.rows_of(angles->cos, positions), sin = context.rows_of(angles->sin, positions);
    flow[Slot::q] = kernels::rope(qkv[0], cos, sin);
    flow[Slot::k] = kernels::rope(qkv[1], cos, sin);
    flow[Slot::v] = qkv[2];
  };
}

void Builder::attend_and_project(std::int64_t key_dim, std::int64_t kv_heads, std::int64_t value_dim) {
  Attention how;
  if (shape_.window > 0 && layer_ % 2 == 0) how.window = shape_.window;
  if (stretched_ && shape_.latent) how.scale = shape_.yarn->softmax_factor() / std::sqrt(static_cast<double>(key_dim));
  std::vector<int> sinks;
  if (shape_.sinks)
    sinks = {matrix("attention.sinks", {shape_.heads}, Placement::column, depth_std(), "self_attn.sinks")};
  cell(name("attention.sdpa"), sinks,
       {tokens_of(Slot::x), heads_of(Slot::q, shape_.heads, key_dim), heads_of(Slot::k, kv_heads, key_dim),
        heads_of(Slot::v, kv_heads, value_dim)},
       [layer = static_cast<std::size_t>(layer_), how](Flow& flow, const CellContext& context) {
         Attention input = how;
         input.q = flow.take(Slot::q);
         input.k = flow.take(Slot::k);
         input.v = flow.take(Slot::v);
         if (context.cache) {
           input.k = remember(context.cache->keys[layer], input.k);
           input.v = remember(context.cache->values[layer], input.v);
         }
         if (!context.weights.empty()) input.sinks = context.weights[0].value;
         flow[Slot::h] = context.operations->attention(input).reshape({input.q.size(0) * input.q.size(1), -1});
       })
      .attention_width = shape_.heads * (key_dim + value_dim);
  const std::int64_t width = shape_.heads * value_dim;
  std::vector<int> weights{
      matrix("attention.wo.weight", {shape_.dim, width}, Placement::row, depth_std(), "self_attn.o_proj.weight")};
  if (shape_.attention_biases)
    weights.push_back(
        matrix("attention.wo.bias", {shape_.dim}, Placement::replicated, depth_std(), "self_attn.o_proj.bias"));
  Cell& wo = cell(name("attention.wo"), weights, {tokens_of(Slot::x), features_of(width)}, multiply);
  wo.output = Boundary::reduce;
  wo.residual = true;
  if (shape_.attention_biases)
    wo.epilogue = [](Flow& flow, const CellContext& context) {
      flow[Slot::h] = flow[Slot::h] + context.weights[1].value;
    };
}

}  // namespace tessera::model
