// Multi-head latent attention: DeepSeek-V2 and -V3.
//
// The short vectors are made from each rank's own tokens; what tensor-parallel ranks gather before heads are made from
// them is short, too: [query latent | key-value latent | rotated key].
#include "builder.hpp"
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

void Builder::latent_attention() {
  latents();
  heads_from_latents();
  attend_and_project(shape_.latent->nope_dim + shape_.latent->rope_dim, shape_.heads, shape_.latent->value_dim);
}

void Builder::latents() {
  const LatentAttention& a = *shape_.latent;
  std::vector<int> weights{
      matrix("attention.wkv_a.weight", {a.rank + a.rope_dim, shape_.dim}, Placement::replicated, 0.02,
             "self_attn.kv_a_proj_with_mqa.weight"),
      ones("attention.kv_norm.weight", a.rank, Placement::replicated, "self_attn.kv_a_layernorm.weight")};
  if (a.query_rank > 0) {
    weights.push_back(matrix("attention.wq_a.weight", {a.query_rank, shape_.dim}, Placement::replicated, 0.02,
                             "self_attn.q_a_proj.weight"));
    weights.push_back(
        ones("attention.q_norm.weight", a.query_rank, Placement::replicated, "self_attn.q_a_layernorm.weight"));
  }
  cell(name("attention.wqkv_a"), weights, {tokens_of(Slot::x), tokens_of(Slot::h)},
       [rank = a.rank, eps = shape_.norm_eps](Flow& flow, const CellContext& context) {
         Tensor query = flow.take(Slot::h);
         const Tensor key_value = context.operations->product(query, context.weights[0]);
         if (context.weights.size() > 2)
           query =
               kernels::rms_norm(context.operations->product(query, context.weights[2]), context.weights[3].value, eps);
         const Tensor latent =
             kernels::rms_norm(key_value.narrow(1, 0, rank).contiguous(), context.weights[1].value, eps);
         flow[Slot::h] = at::cat({query, latent, key_value.narrow(1, rank, key_value.size(1) - rank)}, 1);
       });
}

void Builder::heads_from_latents() {
  const LatentAttention& a = *shape_.latent;
  const std::int64_t from = a.query_rank > 0 ? a.query_rank : shape_.dim, width = from + a.rank + a.rope_dim;
  const char* ours = a.query_rank > 0 ? "attention.wq_b.weight" : "attention.wq.weight";
  const char* theirs = a.query_rank > 0 ? "self_attn.q_b_proj.weight" : "self_attn.q_proj.weight";
  const int wq = matrix(ours, {shape_.heads * (a.nope_dim + a.rope_dim), from}, Placement::column, 0.02, theirs);
  const int wkv = matrix("attention.wkv_b.weight", {shape_.heads * (a.nope_dim + a.value_dim), a.rank},
                         Placement::column, 0.02, "self_attn.kv_b_proj.weight");
  Cell& made =
      cell(name("attention.wqkv_b"), {wq, wkv}, {tokens_of(Slot::x), {Slot::h, Spread::tokens, {width}}},
           [angles = angles_, a, from](Flow& flow, const CellContext& context) {
             const std::vector<Tensor> parts = flow.take(Slot::h).split_with_sizes({from, a.rank, a.rope_dim}, 1);
             const std::int64_t batch = context.batch, positions = parts[0].size(0) / batch;
             const Tensor cos = context.rows_of(angles->cos, positions), sin = context.rows_of(angles->sin, positions);
             const Tensor q = context.operations->product(parts[0].contiguous(), context.weights[0])
                                  .view({batch, positions, -1, a.nope_dim + a.rope_dim});
             const Tensor kv = context.operations->product(parts[1].contiguous(), context.weights[1])
                                   .view({batch, positions, -1, a.nope_dim + a.value_dim});
             const Tensor turned = kernels::rope(parts[2].reshape({batch, positions, 1, a.rope_dim}), cos, sin);
             flow[Slot::q] = rope_behind(q, a.rope_dim, cos, sin);
             flow[Slot::k] = at::cat({kv.narrow(3, 0, a.nope_dim), turned.expand({-1, -1, kv.size(2), -1})}, 3);
             flow[Slot::v] = kv.narrow(3, a.nope_dim, a.value_dim);
           });
  made.input = Boundary::gather;
  made.splits_input = true;
}

}  // namespace tessera::model
