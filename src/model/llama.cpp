#include "tessera/model/llama.hpp"

#include <cmath>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "vocabulary_embedding.hpp"

namespace tessera::model {
namespace {

using torch::Tensor;

/// Tabulated angles, shared by the cells of all layers: [max_positions, head_dim / 2] each.
struct Angles {
  Tensor cos, sin;
};

/// Appends this call's keys (values) to the layer's cache and returns all of them.
Tensor remember(Tensor& cached, const Tensor& fresh) {
  cached = cached.defined() ? torch::cat({cached, fresh}, 1) : fresh;
  return cached;
}

/// Builds the list of cells; one method a cell, in the order in which they run.
class Builder {
 public:
  Builder(const LlamaShape& shape, Angles angles)
      : shape_(shape), angles_(std::make_shared<Angles>(std::move(angles))) {}

  Model build() {
    model_.name = shape_.name;
    model_.dimensions = {shape_.dim,      shape_.layers, shape_.heads, shape_.kv_heads,
                         shape_.head_dim, shape_.hidden, shape_.vocab, shape_.tied};
    embedding();
    for (layer_ = 0; layer_ < shape_.layers; ++layer_) block();
    head();
    return std::move(model_);
  }

 private:
  using Forward = std::function<void(Flow&, const CellContext&)>;

  int param(const std::string& fqn, Shape shape, Placement placement, InitialValues init, const std::string& hf_name,
            std::int64_t rope_heads = 0) {
    model_.params.push_back({fqn, std::move(shape), placement, init, hf_name, static_cast<int>(rope_heads)});
    return static_cast<int>(model_.params.size()) - 1;
  }

  Cell& cell(const std::string& name, std::vector<int> params, std::vector<Live> live, Boundary input, Boundary output,
             bool residual, Forward forward) {
    model_.cells.push_back({name, std::move(params), std::move(live), input, output, residual, std::move(forward)});
    return model_.cells.back();
  }

  Live tokens_of(Slot slot) const { return {slot, Spread::tokens, {shape_.dim}}; }
  Live heads_of(Slot slot, std::int64_t heads) const { return {slot, Spread::heads, {heads, shape_.head_dim}}; }
  static Live features_of(std::int64_t width) { return {Slot::h, Spread::features, {width}}; }
  std::vector<Live> residual_only() const { return {tokens_of(Slot::x)}; }
  std::vector<Live> residual_and(Live working) const { return {tokens_of(Slot::x), std::move(working)}; }

  void unit(const std::string& name, std::size_t begin) {
    model_.units.push_back({name, static_cast<int>(begin), static_cast<int>(model_.cells.size())});
  }

  std::string name(const char* what) const { return fmt::format("layers.{}.{}", layer_, what); }
  std::string weight(const char* what) const { return name(what) + ".weight"; }
  std::string hf(const char* what) const { return fmt::format("model.layers.{}.{}.weight", layer_, what); }

  static InitialValues truncated(double std) { return {0, std, -2, 2}; }
  static InitialValues ones() { return {1, 0, 0, 0}; }
  InitialValues head_values() const {
    const double std = 1 / std::sqrt(static_cast<double>(shape_.dim));
    return {0, std, -3 * std, 3 * std};
  }
  double depth_std() const { return 0.02 / std::sqrt(2.0 * static_cast<double>(layer_ + 1)); }

  void embedding() {
    // A tied table is the output layer too, whose scale decides the first loss.
    const InitialValues init = shape_.tied ? head_values() : InitialValues{0, 1, -HUGE_VAL, HUGE_VAL};
    embedding_ = param("tok_embeddings.weight", {shape_.vocab, shape_.dim}, Placement::vocabulary, init,
                       "model.embed_tokens.weight");
    cell("tok_embeddings", {embedding_}, {{Slot::tokens, Spread::tokens, {}}}, Boundary::none, Boundary::reduce, false,
         [vocab = shape_.vocab](Flow& flow, const CellContext& context) {
           const Weight& table = context.weights[0];
           flow[Slot::x] = vocabulary_embedding(flow.take(Slot::tokens), table, table.value.size(0) == vocab);
         })
        .activity = 0;
    unit("tok_embeddings", 0);
  }

  void block() {
    const std::size_t begin = model_.cells.size();
    norm("attention_norm", "input_layernorm");
    attention_cells();
    norm("ffn_norm", "post_attention_layernorm");
    feed_forward();
    unit(fmt::format("layers.{}", layer_), begin);
  }

  void norm(const char* what, const char* hf_name) {
    const int index = param(weight(what), {shape_.dim}, Placement::replicated, ones(), hf(hf_name));
    cell(name(what), {index}, residual_only(), Boundary::none, Boundary::none, false,
         [eps = shape_.norm_eps](Flow& flow, const CellContext& context) {
           const Tensor x = flow[Slot::x], weight = context.weights[0].value;
           flow[Slot::h] = kernels::rms_norm(x, weight, eps);
           context.operations->remakable(flow[Slot::h], [x, weight, eps] { return kernels::rms_norm(x, weight, eps); });
         });
  }

  void attention_cells() {
    const std::int64_t q_rows = shape_.heads * shape_.head_dim, kv_rows = shape_.kv_heads * shape_.head_dim;
    const int wq = param(weight("attention.wq"), {q_rows, shape_.dim}, Placement::column, truncated(0.02),
                         hf("self_attn.q_proj"), shape_.heads);
    const int wk = param(weight("attention.wk"), {kv_rows, shape_.dim}, Placement::column, truncated(0.02),
                         hf("self_attn.k_proj"), shape_.kv_heads);
    const int wv = param(weight("attention.wv"), {kv_rows, shape_.dim}, Placement::column, truncated(0.02),
                         hf("self_attn.v_proj"));
    for (const int kv : {wk, wv})
      model_.params[static_cast<std::size_t>(kv)].max_pieces = static_cast<int>(shape_.kv_heads);
    const int wo = param(weight("attention.wo"), {shape_.dim, q_rows}, Placement::row, truncated(depth_std()),
                         hf("self_attn.o_proj"));
    cell(name("attention.wqkv"), {wq, wk, wv}, residual_and(tokens_of(Slot::h)), Boundary::gather, Boundary::none,
         false, project());
    cell(name("attention.sdpa"), {},
         {tokens_of(Slot::x), heads_of(Slot::q, shape_.heads), heads_of(Slot::k, shape_.kv_heads),
          heads_of(Slot::v, shape_.kv_heads)},
         Boundary::none, Boundary::none, false, attend())
        .attention_width = 2 * q_rows;
    cell(name("attention.wo"), {wo}, residual_and(features_of(q_rows)), Boundary::none, Boundary::reduce, true,
         linear());
  }

  Forward project() const {
    return [angles = angles_, hd = shape_.head_dim](Flow& flow, const CellContext& context) {
      const auto qkv = context.operations->products(flow.take(Slot::h), context.weights);
      const auto heads = [&](std::size_t i) { return qkv[i].view({context.batch, -1, qkv[i].size(1) / hd, hd}); };
      const std::int64_t positions = qkv[0].size(0) / context.batch;
      const Tensor cos = context.rows_of(angles->cos, positions), sin = context.rows_of(angles->sin, positions);
      flow[Slot::q] = kernels::rope(heads(0), cos, sin);
      flow[Slot::k] = kernels::rope(heads(1), cos, sin);
      flow[Slot::v] = heads(2);
    };
  }

  Forward attend() const {
    return [layer = static_cast<std::size_t>(layer_)](Flow& flow, const CellContext& context) {
      const Tensor q = flow.take(Slot::q);
      Tensor k = flow.take(Slot::k), v = flow.take(Slot::v);
      if (context.cache) {
        k = remember(context.cache->keys[layer], k);
        v = remember(context.cache->values[layer], v);
      }
      flow[Slot::h] = context.operations->attention({q, k, v}).reshape({q.size(0) * q.size(1), -1});
    };
  }

  static Forward linear() {
    return [](Flow& flow, const CellContext& context) {
      flow[Slot::h] = context.operations->product(flow.take(Slot::h), context.weights[0]);
    };
  }

  void feed_forward() {
    const int w1 = param(weight("feed_forward.w1"), {shape_.hidden, shape_.dim}, Placement::column, truncated(0.02),
                         hf("mlp.gate_proj"));
    const int w3 = param(weight("feed_forward.w3"), {shape_.hidden, shape_.dim}, Placement::column,
                         truncated(depth_std()), hf("mlp.up_proj"));
    const int w2 = param(weight("feed_forward.w2"), {shape_.dim, shape_.hidden}, Placement::row, truncated(depth_std()),
                         hf("mlp.down_proj"));
    cell(name("feed_forward.w13"), {w1, w3}, residual_and(tokens_of(Slot::h)), Boundary::gather, Boundary::none, false,
         [](Flow& flow, const CellContext& context) {
           const auto gate_up = context.operations->products(flow.take(Slot::h), context.weights);
           flow[Slot::h] = kernels::swiglu(gate_up[0], gate_up[1]);
           context.operations->remakable(flow[Slot::h], [gate_up] { return kernels::swiglu(gate_up[0], gate_up[1]); });
         });
    cell(name("feed_forward.w2"), {w2}, residual_and(features_of(shape_.hidden)), Boundary::none, Boundary::reduce,
         true, linear());
  }

  void head() {
    const std::size_t begin = model_.cells.size();
    const int norm = param("norm.weight", {shape_.dim}, Placement::replicated, ones(), "model.norm.weight");
    cell("norm", {norm}, residual_only(), Boundary::none, Boundary::none, false,
         [eps = shape_.norm_eps](Flow& flow, const CellContext& context) {
           flow[Slot::h] = kernels::rms_norm(flow.take(Slot::x), context.weights[0].value, eps);
         });
    const int output = shape_.tied ? embedding_
                                   : param("output.weight", {shape_.vocab, shape_.dim}, Placement::vocabulary,
                                           head_values(), "lm_head.weight");
    cell("output", {output}, {tokens_of(Slot::h)}, Boundary::gather, Boundary::none, false,
         [](Flow& flow, const CellContext& context) {
           flow[Slot::logits] = context.operations->product(flow.take(Slot::h), context.weights[0]);
         });
    unit("[norm, output]", begin);
  }

  LlamaShape shape_;
  std::shared_ptr<const Angles> angles_;
  Model model_;
  std::int64_t layer_ = 0;
  int embedding_ = 0;
};

}  // namespace

std::int64_t llama_hidden(std::int64_t dim, std::int64_t multiple_of, std::optional<double> multiplier) {
  std::int64_t hidden = 8 * dim / 3;
  if (multiplier) hidden = static_cast<std::int64_t>(*multiplier * static_cast<double>(hidden));
  return (hidden + multiple_of - 1) / multiple_of * multiple_of;
}

Model make_llama(const LlamaShape& shape, std::int64_t max_positions, torch::ScalarType dtype, torch::Device device) {
  std::optional<kernels::RopeScaling> scaling;
  if (const auto& s = shape.rope_scaling)
    scaling = kernels::RopeScaling{s->factor, s->low_freq_factor, s->high_freq_factor, s->original_max_position};
  const auto table_dtype = dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto [cos, sin] = kernels::rope_tables(max_positions, shape.head_dim, shape.rope_theta, scaling, table_dtype);
  return Builder(shape, {cos.to(device), sin.to(device)}).build();
}

}  // namespace tessera::model
