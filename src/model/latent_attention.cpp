// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention: DeepSeek-V2 and -V3.
#include "cell_functions.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

/// x [B, S, H, d] with its last `rotated` dimensions rotated.
Tensor rope_behind(const Tensor& x, std::int64_t rotated, const Tensor& cos, const Tensor& sin) {
  const std::int64_t kept = x.size(3) - rotated;
  return at::cat({x.narrow(3, 0, kept), kernels::rope(x.narrow(3, kept, rotated), cos, sin)}, 3);
}

}  // namespace

CellFunction CellMaker::latents() const {
  return [rank = shape_.latent->rank, eps = shape_.latent->norm_eps](Flow& flow,
                                                                     const CellContext& context) {
    Tensor query = flow.take(Slot::h);
    const Tensor key_value = context.operations->product(query, context.weights[0]);
    if (context.weights.size() > 2)
      query = kernels::rms_norm(context.operations->product(query, context.weights[2]),
                                context.weights[3].value, eps);
    const Tensor latent =
        kernels::rms_norm(key_value.narrow(1, 0, rank).contiguous(), context.weights[1].value, eps);
    flow[Slot::h] =
        at::cat({query, latent, key_value.narrow(1, rank, key_value.size(1) - rank)}, 1);
  };
}

CellFunction CellMaker::latent_projections() const {
  const std::int64_t from = shape_.latent->query_rank > 0 ? shape_.latent->query_rank : shape_.dim;
  return [a = *shape_.latent, from](Flow& flow, const CellContext& context) {
    const std::vector<Tensor> parts =
        flow.take(Slot::h).split_with_sizes({from, a.rank, a.rope_dim}, 1);
    const std::int64_t batch = context.batch, positions = parts[0].size(0) / batch;
    const auto [cos, sin] = context.angles_of(positions);
    const Tensor q = context.operations->product(parts[0].contiguous(), context.weights[0])
                         .view({batch, positions, -1, a.nope_dim + a.rope_dim});
    const Tensor kv = context.operations->product(parts[1].contiguous(), context.weights[1])
                          .view({batch, positions, -1, a.nope_dim + a.value_dim});
    const Tensor turned =
        kernels::rope(parts[2].reshape({batch, positions, 1, a.rope_dim}), cos, sin);
    flow[Slot::q] = rope_behind(q, a.rope_dim, cos, sin);
    flow[Slot::k] =
        at::cat({kv.narrow(3, 0, a.nope_dim), turned.expand({-1, -1, kv.size(2), -1})}, 3);
    flow[Slot::v] = kv.narrow(3, a.nope_dim, a.value_dim);
  };
}

}  // namespace tessera::model
