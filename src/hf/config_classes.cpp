// SPDX-License-Identifier: Apache-2.0
#include "config_classes.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "config_fields.hpp"
#include "tessera/base/error.hpp"
#include "tessera/hf/config.hpp"

namespace tessera::hf {
namespace {

using namespace model;

DecoderShape read_llama(const JsonNode& config) {
  refuse_if_set(config, "attention_bias");
  refuse_if_set(config, "mlp_bias");
  return read_common(config, Family::llama, {4096, 11008, 32, 32, 0, 0, 32000, 1e-6, 10000, 2048});
}

/// What the dense Qwen3 and the mixture share.
DecoderShape read_any_qwen3(const JsonNode& config, const Defaults& defaults) {
  refuse_if_set(config, "attention_bias");
  refuse_if_set(config, "use_sliding_window");
  const JsonNode types = config["layer_types"];
  for (std::size_t i = 0; types.is_array() && i < types.size(); ++i)
    if (types[i].string() != "full_attention")
      types[i].refuse("Tessera's Qwen3 has full attention alone");
  DecoderShape shape = read_common(config, Family::qwen3, defaults);
  shape.qk_norm = true;
  return shape;
}

DecoderShape read_qwen3(const JsonNode& config) {
  return read_any_qwen3(config, {4096, 22016, 32, 32, 32, 128, 151936, 1e-6, 10000, 32768});
}

DecoderShape read_qwen3_moe(const JsonNode& config) {
  DecoderShape shape =
      read_any_qwen3(config, {2048, 6144, 24, 32, 4, 0, 151936, 1e-6, 10000, 32768});
  const JsonNode dense = config["mlp_only_layers"];
  require(at_least(0, config["decoder_sparse_step"], 1) == 1 &&
              (dense.is_null() || dense.array().empty()),
          ExitCode::usage,
          "{}: every layer must be a mixture (decoder_sparse_step 1, no mlp_only_layers)",
          config.where());
  shape.mixture = read_mixture(config, "num_experts", 128, 8);
  shape.mixture->routing.normalise = config["norm_topk_prob"].boolean(false);
  shape.mixture->hidden = positive(config["moe_intermediate_size"], 768);
  return shape;
}

DecoderShape read_mixtral(const JsonNode& config) {
  DecoderShape shape = read_common(config, Family::mixtral,
                                   {4096, 14336, 32, 32, 8, 0, 32000, 1e-5, 1000000, 131072});
  require(config["sliding_window"].is_null(), ExitCode::usage,
          "{}: \"sliding_window\" is not supported for model_type mixtral; set it to null",
          config.where());
  shape.mixture = read_mixture(config, "num_local_experts", 8, 2);
  shape.mixture->routing.normalise = true;
  shape.mixture->hidden = shape.hidden;
  return shape;
}

LatentAttention read_latent(const JsonNode& config) {
  LatentAttention latent;
  const bool named = config.object().contains("q_lora_rank");
  if (!named || !config["q_lora_rank"].is_null())  // null: from the whole input
    latent.query_rank = at_least(0, config["q_lora_rank"], 1536);
  latent.rank = positive(config["kv_lora_rank"], 512);
  latent.nope_dim = positive(config["qk_nope_head_dim"], 128);
  latent.rope_dim = positive(config["qk_rope_head_dim"], 64);
  latent.value_dim = positive(config["v_head_dim"], 128);
  latent.norm_eps = above_zero(config["latent_norm_eps"], kLatentEps);
  require(latent.rope_dim % 2 == 0, ExitCode::usage,
          "{}: qk_rope_head_dim {} must be even (RoPE rotates pairs)", config.where(),
          latent.rope_dim);
  return latent;
}

void read_groups(RoutingRule& rule, const JsonNode& config) {
  rule.groups = at_least(0, config["n_group"], 8);
  rule.kept_groups = at_least(0, config["topk_group"], 4);
  if (rule.groups <= 1) rule.groups = rule.kept_groups = 0;
  require(rule.groups == 0 || (rule.experts % rule.groups == 0 && rule.experts / rule.groups >= 2 &&
                               rule.kept_groups >= 1 && rule.kept_groups <= rule.groups &&
                               rule.top_k <= rule.kept_groups * (rule.experts / rule.groups)),
          ExitCode::usage,
          "{}: {} experts in {} groups, of which {} are kept, do not give {} experts a token",
          config.where(), rule.experts, rule.groups, rule.kept_groups, rule.top_k);
}

DecoderShape read_deepseek(const JsonNode& config) {
  refuse_if_set(config, "attention_bias");
  require(config["rope_interleave"].boolean(true), ExitCode::usage,
          "{}: \"rope_interleave\" = false is not supported", config.where());
  const auto scoring = config["scoring_func"].string_or("sigmoid");
  require(scoring == "sigmoid", ExitCode::usage,
          "{}: scoring_func \"{}\" is not supported; use sigmoid", config.where(), scoring);
  DecoderShape shape = read_common(config, Family::deepseek_v3,
                                   {7168, 18432, 61, 128, 128, 64, 129280, 1e-6, 10000, 4096});
  require(shape.kv_heads == shape.heads, ExitCode::usage,
          "{}: latent attention has as many key-value heads as heads", config.where());
  shape.latent = read_latent(config);
  shape.head_dim = shape.latent->nope_dim + shape.latent->rope_dim;
  shape.mixture = read_mixture(config, "n_routed_experts", 256, 8);
  RoutingRule& rule = shape.mixture->routing;
  rule.score = ScoreFunction::sigmoid;
  rule.normalise = config["norm_topk_prob"].boolean(true);
  rule.scale = above_zero(config["routed_scaling_factor"], 2.5);
  read_groups(rule, config);
  shape.mixture->hidden = positive(config["moe_intermediate_size"], 2048);
  shape.mixture->shared = at_least(0, config["n_shared_experts"], 1);
  shape.mixture->first_dense =
      std::min(at_least(0, config["first_k_dense_replace"], 3), shape.layers);
  shape.mixture->balance_rate = 1e-3;
  return shape;
}

/// Sliding windows in every other layer, from the first: the only order that gpt-oss was published
/// with.
void check_layer_types(const JsonNode& config, std::int64_t layers) {
  const JsonNode types = config["layer_types"];
  if (types.is_null()) return;
  for (std::size_t i = 0; i < types.array().size(); ++i)
    require(types[i].string() == (i % 2 == 0 ? "sliding_attention" : "full_attention"),
            ExitCode::usage, "{}: layer_types must alternate, sliding_attention first",
            config.where());
  require(types.size() == 0 || static_cast<std::int64_t>(types.size()) == layers, ExitCode::usage,
          "{}: {} layer_types for {} layers", config.where(), types.size(), layers);
}

DecoderShape read_gpt_oss(const JsonNode& config) {
  DecoderShape shape = read_common(config, Family::gpt_oss,
                                   {2880, 2880, 36, 64, 8, 64, 201088, 1e-5, 150000, 131072});
  require(config["attention_bias"].boolean(true), ExitCode::usage,
          "{}: \"attention_bias\" = false is not supported", config.where());
  if (config["rope_parameters"].is_null() && !has_values(config["rope_scaling"])) {
    shape.yarn.emplace();
    shape.yarn->factor = 32;
    shape.yarn->truncate = false;
    shape.yarn->original_max_position =
        positive(config[kOriginalPositions], shape.yarn->original_max_position);
  }
  check_layer_types(config, shape.layers);
  shape.attention_biases = shape.sinks = true;
  const JsonNode window = config["sliding_window"];
  if (config.object().contains("sliding_window") && window.is_null())
    window.refuse("gpt-oss needs it in every other layer; give the number of keys");
  shape.window = positive(window, 128);
  shape.mixture = read_mixture(config, "num_local_experts", 128, 4);
  shape.mixture->routing.normalise = true;
  shape.mixture->hidden = shape.hidden;
  shape.mixture->biased = true;
  shape.mixture->clamped =
      ClampedGate{config["swiglu_alpha"].number(1.702), above_zero(config["swiglu_limit"], 7.0)};
  return shape;
}

constexpr std::array kClasses{
    ConfigClass{"llama", "LlamaForCausalLM", Family::llama, false, read_llama},
    ConfigClass{"qwen3", "Qwen3ForCausalLM", Family::qwen3, false, read_qwen3},
    ConfigClass{"qwen3_moe", "Qwen3MoeForCausalLM", Family::qwen3, true, read_qwen3_moe},
    ConfigClass{"mixtral", "MixtralForCausalLM", Family::mixtral, true, read_mixtral},
    ConfigClass{"deepseek_v3", "DeepseekV3ForCausalLM", Family::deepseek_v3, true, read_deepseek},
    ConfigClass{"gpt_oss", "GptOssForCausalLM", Family::gpt_oss, true, read_gpt_oss},
};

}  // namespace

std::span<const ConfigClass> config_classes() { return kClasses; }

const ConfigClass& class_of(const DecoderShape& shape) {
  const auto found = std::ranges::find_if(kClasses, [&](const ConfigClass& row) {
    return row.family == shape.family && row.mixture == shape.mixture.has_value();
  });
  TESSERA_EXPECT(found != kClasses.end(), "config_classes.cpp has no row for {}", shape.name);
  return *found;
}

}  // namespace tessera::hf
