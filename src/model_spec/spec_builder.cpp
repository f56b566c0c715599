// SPDX-License-Identifier: Apache-2.0
#include "spec_builder.hpp"

#include <cmath>

namespace tessera::model {

ModelSpec SpecBuilder::build() {
  const LatentAttention* latent = shape_.latent ? &*shape_.latent : nullptr;
  model_.name = shape_.name;
  model_.properties = properties_of(shape_);
  model_.dimensions = {shape_.dim,    shape_.layers, shape_.heads, shape_.kv_heads, shape_.head_dim,
                       shape_.hidden, shape_.vocab,  shape_.tied,  shape_.head_dim};
  if (latent) {
    model_.dimensions.head_dim = latent->nope_dim + latent->rope_dim;
    model_.dimensions.value_dim = latent->value_dim;
  }
  if (const auto& m = shape_.mixture)
    model_.balance = {m->auxiliary, m->z, m->routing.experts, shape_.layers - m->first_dense};
  embedding();
  for (layer_ = 0; layer_ < shape_.layers; ++layer_) block();
  layer_ = -1;
  head();
  return std::move(model_);
}

int SpecBuilder::param(ParamSpec spec) {
  model_.params.push_back(std::move(spec));
  return static_cast<int>(model_.params.size()) - 1;
}

int SpecBuilder::matrix(const std::string& what, Shape shape, Placement placement, double std,
                        const std::string& hf_name) {
  return param({name(what), std::move(shape), placement, {0, std, -2, 2}, hf(hf_name)});
}

int SpecBuilder::ones(const std::string& what, std::int64_t size, Placement placement,
                      const std::string& hf_name) {
  return param({name(what), {size}, placement, {1, 0, 0, 0}, hf(hf_name)});
}

CellSpec& SpecBuilder::cell(CellKind kind, const std::string& name, std::vector<int> params,
                            std::vector<Live> live) {
  if (model_.balance.wanted() && !model_.mixtures.empty())
    live.push_back({Slot::balance, Spread::apart, {2 * model_.balance.experts + 1}});
  CellSpec made;
  made.kind = kind;
  made.name = name;
  made.params = std::move(params);
  made.live = std::move(live);
  made.layer = layer_;
  model_.cells.push_back(std::move(made));
  return model_.cells.back();
}

void SpecBuilder::unit(const std::string& name, std::size_t begin) {
  model_.units.push_back({name, static_cast<int>(begin), static_cast<int>(model_.cells.size())});
}

InitialValues SpecBuilder::head_values() const {
  const double std = 1 / std::sqrt(static_cast<double>(shape_.dim));
  return {0, std, -3 * std, 3 * std};
}

double SpecBuilder::depth_std() const {
  return 0.02 / std::sqrt(2.0 * static_cast<double>(layer_ + 1));
}

double SpecBuilder::input_std() const {
  return shape_.family == Family::gpt_oss ? depth_std() : 0.02;
}

void SpecBuilder::embedding() {
  // A tied table is the output layer too, whose scale decides the first loss.
  const InitialValues init = shape_.tied ? head_values() : InitialValues{0, 1, -HUGE_VAL, HUGE_VAL};
  embedding_ = param({kTokenEmbedding,
                      {shape_.vocab, shape_.dim},
                      Placement::vocabulary,
                      init,
                      "model.embed_tokens.weight"});
  CellSpec& made = cell(CellKind::embedding, "tok_embeddings", {embedding_},
                        {{Slot::tokens, Spread::tokens, {}}});
  made.output = Boundary::reduce;
  made.activity = 0;
  unit("tok_embeddings", 0);
}

void SpecBuilder::block() {
  const std::size_t begin = model_.cells.size();
  const bool mixed = shape_.is_mixture(layer_);
  norm("attention_norm", "input_layernorm", CellKind::norm);
  shape_.latent ? latent_attention() : attention();
  norm("ffn_norm", "post_attention_layernorm", mixed ? CellKind::mixture_norm : CellKind::norm);
  if (mixed)
    mixture();
  else
    gated_layer("feed_forward", "mlp", shape_.hidden, std::nullopt);
  unit(fmt::format("layers.{}", layer_), begin);
}

void SpecBuilder::norm(const char* what, const char* hf_name, CellKind kind) {
  const int weight = ones(std::string(what) + ".weight", shape_.dim, Placement::replicated,
                          std::string(hf_name) + ".weight");
  cell(kind, name(what), {weight}, {tokens_of(Slot::x)});
}

/// SwiGLU: w2(silu(w1 x) * w3 x), added to x. Its input is h, or what stays in slot `source`.
void SpecBuilder::gated_layer(const std::string& part, const std::string& hf_part,
                              std::int64_t hidden, std::optional<Slot> source) {
  const Shape in{hidden, shape_.dim}, out{shape_.dim, hidden};
  const int w1 =
      matrix(part + ".w1.weight", in, Placement::column, 0.02, hf_part + ".gate_proj.weight");
  const int w3 =
      matrix(part + ".w3.weight", in, Placement::column, depth_std(), hf_part + ".up_proj.weight");
  const int w2 =
      matrix(part + ".w2.weight", out, Placement::row, depth_std(), hf_part + ".down_proj.weight");
  std::vector<Live> between{tokens_of(Slot::x), features_of(hidden)};
  if (source) between.push_back(tokens_of(*source));
  CellSpec& first = cell(CellKind::gated_linear, name(part + ".w13"), {w1, w3},
                         {tokens_of(Slot::x), tokens_of(source.value_or(Slot::h))});
  first.input = Boundary::gather;
  first.source = source;
  CellSpec& second = cell(CellKind::linear, name(part + ".w2"), {w2}, between);
  second.output = Boundary::reduce;
  second.residual = true;
}

void SpecBuilder::head() {
  const std::size_t begin = model_.cells.size();
  const int norm = param(
      {"norm.weight", {shape_.dim}, Placement::replicated, {1, 0, 0, 0}, "model.norm.weight"});
  cell(CellKind::final_norm, "norm", {norm}, {tokens_of(Slot::x)});
  const Shape shape{shape_.vocab, shape_.dim};
  const int output =
      shape_.tied
          ? embedding_
          : param({"output.weight", shape, Placement::vocabulary, head_values(), "lm_head.weight"});
  cell(CellKind::output, "output", {output}, {tokens_of(Slot::h)}).input = Boundary::gather;
  unit("[norm, output]", begin);
}

ModelSpec spec_of(const DecoderShape& shape) { return SpecBuilder(shape).build(); }

}  // namespace tessera::model
