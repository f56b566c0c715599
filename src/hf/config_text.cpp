// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "config_classes.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/hf/config.hpp"

namespace tessera::hf {
namespace {

using namespace model;
using OrderedJson = nlohmann::ordered_json;

/// transformers gives gpt_oss YaRN where the file has none.
OrderedJson no_scaling(Family family) {
  return family == Family::gpt_oss ? OrderedJson{{"rope_type", "default"}} : OrderedJson();
}

OrderedJson scaling_of(const DecoderShape& shape) {
  if (const auto& s = shape.rope_scaling)
    return {{"rope_type", "llama3"},
            {"factor", s->factor},
            {"low_freq_factor", s->low_freq_factor},
            {"high_freq_factor", s->high_freq_factor},
            {"original_max_position_embeddings", s->original_max_position}};
  if (!shape.yarn || shape.yarn->only_beyond) return no_scaling(shape.family);
  const Yarn& y = *shape.yarn;
  OrderedJson yarn{
      {"rope_type", "yarn"},      {"factor", y.factor},
      {"beta_fast", y.beta_fast}, {"beta_slow", y.beta_slow},
      {"truncate", y.truncate},   {"original_max_position_embeddings", y.original_max_position}};
  if (y.mscale > 0) yarn["mscale"] = y.mscale;
  if (y.mscale_all_dim > 0) yarn["mscale_all_dim"] = y.mscale_all_dim;
  if (y.attention_factor > 0) yarn["attention_factor"] = y.attention_factor;
  return yarn;
}

void add_latent(OrderedJson& config, const LatentAttention& a) {
  config["q_lora_rank"] = a.query_rank > 0 ? OrderedJson(a.query_rank) : OrderedJson(nullptr);
  config["kv_lora_rank"] = a.rank;
  config["qk_nope_head_dim"] = a.nope_dim;
  config["qk_rope_head_dim"] = a.rope_dim;
  config["v_head_dim"] = a.value_dim;
  if (a.norm_eps != kLatentEps) config["latent_norm_eps"] = a.norm_eps;
  config["rope_interleave"] = true;
  config["head_dim"] = a.rope_dim;
}

void add_mixture(OrderedJson& config, const DecoderShape& shape) {
  const MixtureShape& m = *shape.mixture;
  const bool qwen = shape.family == Family::qwen3, deepseek = shape.family == Family::deepseek_v3;
  config[qwen       ? "num_experts"
         : deepseek ? "n_routed_experts"
                    : "num_local_experts"] = m.routing.experts;
  config["num_experts_per_tok"] = m.routing.top_k;
  if (qwen || deepseek) {
    config["moe_intermediate_size"] = m.hidden;
    config["norm_topk_prob"] = m.routing.normalise;
  }
  if (m.auxiliary > 0) {
    config["output_router_logits"] = true;
    config["router_aux_loss_coef"] = m.auxiliary;
  }
  require(
      !deepseek || m.routing.score == ScoreFunction::sigmoid, ExitCode::usage,
      "{} selects experts by softmax, which Hugging Face's class for deepseek_v3 cannot do; the "
      "model cannot be exported",
      shape.name);
  if (deepseek) {
    config["n_shared_experts"] = m.shared;
    config["first_k_dense_replace"] = m.first_dense;
    config["routed_scaling_factor"] = m.routing.scale;
    config["n_group"] = std::max<std::int64_t>(1, m.routing.groups);
    config["topk_group"] = std::max<std::int64_t>(1, m.routing.kept_groups);
    config["scoring_func"] = "sigmoid";
    config["topk_method"] = "noaux_tc";
    config["num_nextn_predict_layers"] = 0;
  }
  if (m.clamped) {
    config["swiglu_alpha"] = m.clamped->alpha;
    config["swiglu_limit"] = m.clamped->limit;
  }
}

}  // namespace

std::string config_text(const DecoderShape& shape, DType dtype) {
  const std::string torch_dtype = dtype == DType::bf16  ? "bfloat16"
                                  : dtype == DType::f16 ? "float16"
                                                        : "float32";
  const ConfigClass& described_by = class_of(shape);
  OrderedJson config{{"architectures", {described_by.architecture}},
                     {"model_type", described_by.model_type},
                     {"hidden_size", shape.dim},
                     {"num_hidden_layers", shape.layers},
                     {"num_attention_heads", shape.heads},
                     {"num_key_value_heads", shape.kv_heads},
                     {"head_dim", shape.head_dim},
                     {"intermediate_size", shape.hidden},
                     {"vocab_size", shape.vocab},
                     {"rms_norm_eps", shape.norm_eps},
                     {"hidden_act", "silu"},
                     {"attention_bias", shape.attention_biases},
                     {"mlp_bias", false},
                     {"tie_word_embeddings", shape.tied},
                     {"max_position_embeddings", shape.max_positions},
                     {"rope_theta", shape.rope_theta},
                     {"rope_scaling", scaling_of(shape)},
                     {"torch_dtype", torch_dtype}};
  if (shape.window > 0) config["sliding_window"] = shape.window;
  if (shape.latent) add_latent(config, *shape.latent);
  if (shape.mixture) add_mixture(config, shape);
  return json_text(config, 2);
}

void require_exportable(const DecoderShape& shape) { config_text(shape, DType::f32); }

}  // namespace tessera::hf
