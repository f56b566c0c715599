// SPDX-License-Identifier: Apache-2.0
// Grouped-query attention with RoPE: Llama, Qwen3 (norms of heads), Mixtral, gpt-oss (biases,
// sinks, windows). Latent attention shares the product of queries and keys.
#include <algorithm>
#include <cmath>

#include "cell_functions.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

/// Writes the keys (values) of positions from `first` on into a layer's cache, which doubles when
/// it is full, up to `most` positions; returns all so far.
Tensor remember(Tensor& cached, const Tensor& fresh, std::int64_t first, std::int64_t most) {
  const std::int64_t end = first + fresh.size(1), room = cached.defined() ? cached.size(1) : 0;
  if (end > room) {
    const Tensor larger = at::empty(
        {fresh.size(0), std::max(end, std::min(most, 2 * end)), fresh.size(2), fresh.size(3)},
        fresh.options());
    if (first > 0) larger.narrow(1, 0, first).copy_(cached.narrow(1, 0, first));
    cached = larger;
  }
  cached.narrow(1, first, fresh.size(1)).copy_(fresh);
  return cached.narrow(1, 0, end);
}

}  // namespace

CellFunction CellMaker::projections(bool biased) const {
  return [hd = shape_.head_dim, eps = shape_.norm_eps, biased, normed = shape_.qk_norm](
             Flow& flow, const CellContext& context) {
    std::vector<Tensor> qkv =
        context.operations->products(flow.take(Slot::h), context.weights.first(3));
    for (std::size_t i = 0; biased && i < 3; ++i) qkv[i] = qkv[i] + context.weights[3 + i].value;
    for (std::size_t i = 0; normed && i < 2; ++i) {
      const Tensor heads = qkv[i].view({qkv[i].size(0), -1, hd});
      qkv[i] =
          kernels::rms_norm(heads, context.weights[(biased ? 6 : 3) + i].value, eps).flatten(1);
    }
    if (normed) qkv[2] = qkv[2].contiguous();  // lets go of what the norms have copied
    const std::int64_t positions = qkv[0].size(0) / context.batch;
    const Angles angles = context.angles_of(positions);
    kernels::Heads heads =
        kernels::rope_heads(std::move(qkv), context.batch, hd, angles.cos, angles.sin);
    flow[Slot::q] = std::move(heads.queries);
    flow[Slot::k] = std::move(heads.keys);
    flow[Slot::v] = std::move(heads.values);
  };
}

CellFunction CellMaker::attention(int layer) const {
  Attention how;
  if (shape_.window > 0 && layer % 2 == 0) how.window = shape_.window;
  if (shape_.yarn && shape_.latent)
    how.scale =
        shape_.yarn->softmax_factor() / std::sqrt(static_cast<double>(model_.dimensions.head_dim));
  return [layer = static_cast<std::size_t>(layer), how](Flow& flow, const CellContext& context) {
    Attention input = how;
    input.q = flow.take(Slot::q);
    input.k = flow.take(Slot::k);
    input.v = flow.take(Slot::v);
    if (KeyValueCache* cache = context.cache) {
      input.k = remember(cache->keys[layer], input.k, context.position, cache->positions);
      input.v = remember(cache->values[layer], input.v, context.position, cache->positions);
    }
    if (!context.weights.empty()) input.sinks = context.weights[0].value;
    flow[Slot::h] =
        context.operations->attention(input).reshape({input.q.size(0) * input.q.size(1), -1});
  };
}

}  // namespace tessera::model
