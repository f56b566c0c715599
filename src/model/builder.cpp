#include "builder.hpp"

#include <cmath>

#include "tessera/kernels/rms_norm.hpp"
#include "vocabulary_embedding.hpp"

namespace tessera::model {

using at::Tensor;

void multiply(Flow& flow, const CellContext& context) {
  flow[Slot::h] = context.operations->product(flow.take(Slot::h), context.weights[0]);
}

void normalise(Flow& flow, const CellContext& context, double eps, Slot into) {
  const Tensor x = flow[Slot::x], weight = context.weights[0].value;
  flow[into] = kernels::rms_norm(x, weight, eps);
  context.operations->remakable(flow[into], [x, weight, eps] { return kernels::rms_norm(x, weight, eps); });
}

Model Builder::build() {
  const LatentAttention* latent = shape_.latent ? &*shape_.latent : nullptr;
  model_.name = shape_.name;
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
  head();
  return std::move(model_);
}

int Builder::param(ParamSpec spec) {
  model_.params.push_back(std::move(spec));
  return static_cast<int>(model_.params.size()) - 1;
}

int Builder::matrix(const std::string& what, Shape shape, Placement placement, double std, const std::string& hf_name) {
  return param({name(what), std::move(shape), placement, {0, std, -2, 2}, hf(hf_name)});
}

int Builder::ones(const std::string& what, std::int64_t size, Placement placement, const std::string& hf_name) {
  return param({name(what), {size}, placement, {1, 0, 0, 0}, hf(hf_name)});
}

Cell& Builder::cell(const std::string& name, std::vector<int> params, std::vector<Live> live, Forward forward) {
  if (model_.balance.wanted() && !model_.mixtures.empty())
    live.push_back({Slot::balance, Spread::apart, {2 * model_.balance.experts + 1}});
  Cell made;
  made.name = name;
  made.params = std::move(params);
  made.live = std::move(live);
  made.forward = std::move(forward);
  model_.cells.push_back(std::move(made));
  return model_.cells.back();
}

void Builder::unit(const std::string& name, std::size_t begin) {
  model_.units.push_back({name, static_cast<int>(begin), static_cast<int>(model_.cells.size())});
}

InitialValues Builder::head_values() const {
  const double std = 1 / std::sqrt(static_cast<double>(shape_.dim));
  return {0, std, -3 * std, 3 * std};
}

double Builder::depth_std() const { return 0.02 / std::sqrt(2.0 * static_cast<double>(layer_ + 1)); }

void Builder::embedding() {
  // A tied table is the output layer too, whose scale decides the first loss.
  const InitialValues init = shape_.tied ? head_values() : InitialValues{0, 1, -HUGE_VAL, HUGE_VAL};
  embedding_ =
      param({kTokenEmbedding, {shape_.vocab, shape_.dim}, Placement::vocabulary, init, "model.embed_tokens.weight"});
  Cell& made = cell("tok_embeddings", {embedding_}, {{Slot::tokens, Spread::tokens, {}}},
                    [vocab = shape_.vocab](Flow& flow, const CellContext& context) {
                      const Weight& table = context.weights[0];
                      flow[Slot::x] =
                          vocabulary_embedding(flow.take(Slot::tokens), table, table.value.size(0) == vocab);
                    });
  made.output = Boundary::reduce;
  made.activity = 0;
  unit("tok_embeddings", 0);
}

void Builder::block() {
  const std::size_t begin = model_.cells.size();
  const bool mixed = shape_.is_mixture(layer_);
  norm("attention_norm", "input_layernorm", Slot::h);
  shape_.latent ? latent_attention() : attention();
  norm("ffn_norm", "post_attention_layernorm", mixed ? Slot::m : Slot::h);
  mixed ? mixture() : feed_forward();
  unit(fmt::format("layers.{}", layer_), begin);
}

void Builder::norm(const char* what, const char* hf_name, Slot into) {
  const int index =
      ones(std::string(what) + ".weight", shape_.dim, Placement::replicated, std::string(hf_name) + ".weight");
  cell(name(what), {index}, {tokens_of(Slot::x)},
       [eps = shape_.norm_eps, into](Flow& flow, const CellContext& context) { normalise(flow, context, eps, into); });
}

void Builder::head() {
  const std::size_t begin = model_.cells.size();
  const int norm = param({"norm.weight", {shape_.dim}, Placement::replicated, {1, 0, 0, 0}, "model.norm.weight"});
  cell("norm", {norm}, {tokens_of(Slot::x)}, [eps = shape_.norm_eps](Flow& flow, const CellContext& context) {
    flow[Slot::h] = kernels::rms_norm(flow.take(Slot::x), context.weights[0].value, eps);
  });
  const int output =
      shape_.tied
          ? embedding_
          : param(
                {"output.weight", {shape_.vocab, shape_.dim}, Placement::vocabulary, head_values(), "lm_head.weight"});
  cell("output", {output}, {tokens_of(Slot::h)}, [](Flow& flow, const CellContext& context) {
    flow[Slot::logits] = context.operations->product(flow.take(Slot::h), context.weights[0]);
  }).input = Boundary::gather;
  unit("[norm, output]", begin);
}

Model make_decoder(const DecoderShape& shape, std::int64_t max_positions, at::ScalarType dtype, at::Device device) {
  Angles angles = rotary_angles(shape, max_positions, dtype == at::kDouble ? at::kDouble : at::kFloat);
  return Builder(shape, {angles.cos.to(device), angles.sin.to(device)}, stretched(shape, max_positions)).build();
}

}  // namespace tessera::model
