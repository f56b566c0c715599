// SPDX-License-Identifier: Apache-2.0
// Attention with RoPE: grouped queries (Llama, Qwen3, Mixtral, gpt-oss), or multi-head latent
// attention (DeepSeek-V2 and -V3).
#include "spec_builder.hpp"

namespace tessera::model {

void SpecBuilder::attention() {
  CellSpec& made = cell(CellKind::projections, name("attention.wqkv"), projections(),
                        {tokens_of(Slot::x), tokens_of(Slot::h)});
  made.input = Boundary::gather;
  made.biased = shape_.attention_biases;
  attend_and_project(shape_.head_dim, shape_.kv_heads, shape_.head_dim);
}

/// wq, wk, wv; then their biases, then the norms of queries and keys, if the model has them.
std::vector<int> SpecBuilder::projections() {
  const std::int64_t hd = shape_.head_dim,
                     heads[] = {shape_.heads, shape_.kv_heads, shape_.kv_heads};
  const char* ours[] = {"attention.wq", "attention.wk", "attention.wv"};
  const char* theirs[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  std::vector<int> all;
  for (const bool bias : {false, true}) {
    if (bias && !shape_.attention_biases) break;
    const std::string suffix = bias ? ".bias" : ".weight";
    for (int i = 0; i < 3; ++i) {
      const Shape shape = bias ? Shape{heads[i] * hd} : Shape{heads[i] * hd, shape_.dim};
      all.push_back(
          matrix(ours[i] + suffix, shape, Placement::column, input_std(), theirs[i] + suffix));
      ParamSpec& spec = param_at(all.back());
      if (i < 2) spec.rope_heads = static_cast<int>(heads[i]);
      if (i > 0) spec.max_pieces = static_cast<int>(shape_.kv_heads);
    }
  }
  if (!shape_.qk_norm) return all;
  for (const char* which : {"q_norm", "k_norm"}) {
    all.push_back(ones(fmt::format("attention.{}.weight", which), hd, Placement::shared,
                       fmt::format("self_attn.{}.weight", which)));
    param_at(all.back()).rope_heads = 1;
  }
  return all;
}

void SpecBuilder::latent_attention() {
  latents();
  heads_from_latents();
  const LatentAttention& a = *shape_.latent;
  attend_and_project(a.nope_dim + a.rope_dim, shape_.heads, a.value_dim);
}

/// The short vectors are made from each rank's own tokens; what tensor-parallel ranks gather before
/// heads are made from them is short, too: [query latent | key-value latent | rotated key].
void SpecBuilder::latents() {
  const LatentAttention& a = *shape_.latent;
  std::vector<int> weights{
      matrix("attention.wkv_a.weight", {a.rank + a.rope_dim, shape_.dim}, Placement::replicated,
             0.02, "self_attn.kv_a_proj_with_mqa.weight"),
      ones("attention.kv_norm.weight", a.rank, Placement::replicated,
           "self_attn.kv_a_layernorm.weight")};
  if (a.query_rank > 0) {
    weights.push_back(matrix("attention.wq_a.weight", {a.query_rank, shape_.dim},
                             Placement::replicated, 0.02, "self_attn.q_a_proj.weight"));
    weights.push_back(ones("attention.q_norm.weight", a.query_rank, Placement::replicated,
                           "self_attn.q_a_layernorm.weight"));
  }
  cell(CellKind::latents, name("attention.wqkv_a"), weights,
       {tokens_of(Slot::x), tokens_of(Slot::h)});
}

void SpecBuilder::heads_from_latents() {
  const LatentAttention& a = *shape_.latent;
  const std::int64_t from = a.query_rank > 0 ? a.query_rank : shape_.dim;
  const char* ours = a.query_rank > 0 ? "attention.wq_b.weight" : "attention.wq.weight";
  const char* theirs = a.query_rank > 0 ? "self_attn.q_b_proj.weight" : "self_attn.q_proj.weight";
  const int wq = matrix(ours, {shape_.heads * (a.nope_dim + a.rope_dim), from}, Placement::column,
                        0.02, theirs);
  const int wkv =
      matrix("attention.wkv_b.weight", {shape_.heads * (a.nope_dim + a.value_dim), a.rank},
             Placement::column, 0.02, "self_attn.kv_b_proj.weight");
  CellSpec& made =
      cell(CellKind::latent_projections, name("attention.wqkv_b"), {wq, wkv},
           {tokens_of(Slot::x), {Slot::h, Spread::tokens, {from + a.rank + a.rope_dim}}});
  made.input = Boundary::gather;
  made.splits_input = true;
}

void SpecBuilder::attend_and_project(std::int64_t key_dim, std::int64_t kv_heads,
                                     std::int64_t value_dim) {
  std::vector<int> sinks;
  if (shape_.sinks)
    sinks = {matrix("attention.sinks", {shape_.heads}, Placement::column, depth_std(),
                    "self_attn.sinks")};
  cell(CellKind::attention, name("attention.sdpa"), sinks,
       {tokens_of(Slot::x), heads_of(Slot::q, shape_.heads, key_dim),
        heads_of(Slot::k, kv_heads, key_dim), heads_of(Slot::v, kv_heads, value_dim)})
      .attention_width = shape_.heads * (key_dim + value_dim);
  const std::int64_t width = shape_.heads * value_dim;
  std::vector<int> weights{matrix("attention.wo.weight", {shape_.dim, width}, Placement::row,
                                  depth_std(), "self_attn.o_proj.weight")};
  if (shape_.attention_biases)
    weights.push_back(matrix("attention.wo.bias", {shape_.dim}, Placement::replicated, depth_std(),
                             "self_attn.o_proj.bias"));
  CellSpec& wo = cell(CellKind::linear, name("attention.wo"), weights,
                      {tokens_of(Slot::x), features_of(width)});
  wo.output = Boundary::reduce;
  wo.residual = true;
  wo.biased = shape_.attention_biases;
}

}  // namespace tessera::model
