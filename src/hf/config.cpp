// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/base/text_file.hpp"

namespace tessera::hf {
namespace {

using namespace model;

nlohmann::json parse(const TextSource& source) {
  const auto text = read_text(source.path);
  require(text.has_value(), ExitCode::usage,
          "cannot open {} (model.hf_config); name a Hugging Face config.json",
          source.path.string());
  return parse_json(*text, source);
}

/// A whole number, also where it is written as 4096.0.
std::int64_t at_least(std::int64_t least, const JsonNode& node, std::int64_t otherwise) {
  const double value = node.number(static_cast<double>(otherwise));
  if (value != std::floor(value) || value < static_cast<double>(least) || value >= 0x1p31)
    node.refuse(fmt::format("{} is not a whole number from {}", value, least));
  return static_cast<std::int64_t>(value);
}

std::int64_t positive(const JsonNode& node, std::int64_t otherwise) {
  return at_least(1, node, otherwise);
}

/// Refuses a feature that this family lacks here.
void refuse_if_set(const JsonNode& config, const char* key) {
  if (config[key].boolean(false))
    config[key].refuse(fmt::format("true is not supported for model_type {}",
                                   config["model_type"].string_or("llama")));
}

RopeScaling llama3_scaling(const JsonNode& config) {
  RopeScaling scaling;
  scaling.factor = config["factor"].number(scaling.factor);
  scaling.low_freq_factor = config["low_freq_factor"].number(scaling.low_freq_factor);
  scaling.high_freq_factor = config["high_freq_factor"].number(scaling.high_freq_factor);
  scaling.original_max_position =
      positive(config["original_max_position_embeddings"], scaling.original_max_position);
  return scaling;
}

/// `positions`: what transformers takes for the original positions if the file does not say.
Yarn yarn_scaling(const JsonNode& config, std::int64_t positions) {
  Yarn yarn;
  yarn.original_max_position = positive(config["original_max_position_embeddings"], positions);
  if (config["factor"].is_null()) config["factor"].refuse("YaRN needs it");
  yarn.factor = config["factor"].number(0);
  yarn.beta_fast = config["beta_fast"].number(32);
  yarn.beta_slow = config["beta_slow"].number(1);
  yarn.truncate = config["truncate"].boolean(true);
  yarn.mscale = config["mscale"].number(0);
  yarn.mscale_all_dim = config["mscale_all_dim"].number(0);
  yarn.attention_factor = config["attention_factor"].number(0);
  return yarn;
}

/// `scaling` is null where nothing is scaled.
void read_scaling(DecoderShape& shape, const JsonNode& scaling, const JsonNode& config) {
  shape.rope_scaling.reset();
  if (scaling.is_null()) return;
  const std::string type = scaling["rope_type"].string_or(scaling["type"].string_or("default"));
  if (type == "llama3") {
    shape.rope_scaling = llama3_scaling(scaling);
  } else if (type == "yarn") {
    shape.yarn = yarn_scaling(scaling, positive(config["max_position_embeddings"], 4096));
  } else {
    require(type == "default", ExitCode::usage,
            "{}: RoPE scaling of type \"{}\" is not supported; use llama3, yarn or default",
            scaling.where(), type);
  }
}

void read_rope(DecoderShape& shape, const JsonNode& config, double default_theta) {
  const JsonNode parameters = config["rope_parameters"];  // transformers 5
  read_scaling(shape, parameters.is_null() ? config["rope_scaling"] : parameters, config);
  shape.rope_theta = config["rope_theta"].number(default_theta);
  if (!parameters.is_null()) shape.rope_theta = parameters["rope_theta"].number(shape.rope_theta);
}

/// Defaults of a family's configuration class where the families differ.
struct Defaults {
  std::int64_t dim, hidden, layers, heads, kv_heads, head_dim,
      vocab;  ///< 0: kv_heads = heads, head_dim = dim / heads
  double eps, theta;
};

DecoderShape read_common(const JsonNode& config, Family family, const Defaults& d) {
  const auto activation = config["hidden_act"].string_or("silu");
  require(activation == "silu", ExitCode::usage, "{}: hidden_act \"{}\" is not supported; use silu",
          config.where(), activation);
  DecoderShape shape;
  shape.family = family;
  shape.dim = positive(config["hidden_size"], d.dim);
  shape.layers = positive(config["num_hidden_layers"], d.layers);
  shape.heads = positive(config["num_attention_heads"], d.heads);
  shape.kv_heads =
      positive(config["num_key_value_heads"], d.kv_heads > 0 ? d.kv_heads : shape.heads);
  shape.head_dim =
      positive(config["head_dim"],
               d.head_dim > 0 ? d.head_dim : std::max<std::int64_t>(1, shape.dim / shape.heads));
  shape.hidden = positive(config["intermediate_size"], d.hidden);
  shape.vocab = positive(config["vocab_size"], d.vocab);
  shape.norm_eps = config["rms_norm_eps"].number(d.eps);
  shape.tied = config["tie_word_embeddings"].boolean(false);
  read_rope(shape, config, d.theta);
  require(shape.heads % shape.kv_heads == 0, ExitCode::usage,
          "{}: {} attention heads are not a multiple of {} key-value heads", config.where(),
          shape.heads, shape.kv_heads);
  require(shape.head_dim % 2 == 0, ExitCode::usage,
          "{}: head_dim {} must be even (RoPE rotates pairs)", config.where(), shape.head_dim);
  return shape;
}

/// Experts of a token, and the auxiliary loss, which Hugging Face adds if the router's logits are
/// asked for.
MixtureShape read_mixture(const JsonNode& config, const char* experts_key, std::int64_t experts,
                          std::int64_t top_k) {
  MixtureShape mixture;
  const char* other =
      std::string_view(experts_key) == "num_local_experts" ? "num_experts" : "num_local_experts";
  mixture.routing.experts = positive(config[experts_key], positive(config[other], experts));
  mixture.routing.top_k = positive(config["num_experts_per_tok"], top_k);
  require(mixture.routing.top_k <= mixture.routing.experts, ExitCode::usage,
          "{}: {} experts a token, of {}", config.where(), mixture.routing.top_k,
          mixture.routing.experts);
  if (config["output_router_logits"].boolean(false))
    mixture.auxiliary = config["router_aux_loss_coef"].number(0.001);
  return mixture;
}

DecoderShape read_llama(const JsonNode& config) {
  refuse_if_set(config, "attention_bias");
  refuse_if_set(config, "mlp_bias");
  return read_common(config, Family::llama, {4096, 11008, 32, 32, 0, 0, 32000, 1e-6, 10000});
}

DecoderShape read_qwen3(const JsonNode& config) {
  refuse_if_set(config, "attention_bias");
  refuse_if_set(config, "use_sliding_window");
  DecoderShape shape =
      read_common(config, Family::qwen3, {4096, 22016, 32, 32, 32, 128, 151936, 1e-6, 10000});
  shape.qk_norm = true;
  return shape;
}

DecoderShape read_qwen3_moe(const JsonNode& config) {
  refuse_if_set(config, "attention_bias");
  refuse_if_set(config, "use_sliding_window");
  DecoderShape shape =
      read_common(config, Family::qwen3, {2048, 6144, 24, 32, 4, 0, 151936, 1e-6, 10000});
  shape.qk_norm = true;
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
  DecoderShape shape =
      read_common(config, Family::mixtral, {4096, 14336, 32, 32, 8, 0, 32000, 1e-5, 1000000});
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
  latent.query_rank = !config["q_lora_rank"].is_null() ? at_least(0, config["q_lora_rank"], 0) : 0;
  latent.rank = positive(config["kv_lora_rank"], 512);
  latent.nope_dim = positive(config["qk_nope_head_dim"], 128);
  latent.rope_dim = positive(config["qk_rope_head_dim"], 64);
  latent.value_dim = positive(config["v_head_dim"], 128);
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
                                   {7168, 18432, 61, 128, 128, 64, 129280, 1e-6, 10000});
  require(shape.kv_heads == shape.heads, ExitCode::usage,
          "{}: latent attention has as many key-value heads as heads", config.where());
  shape.latent = read_latent(config);
  if (config["q_lora_rank"].is_null()) shape.latent->query_rank = 0;
  shape.head_dim = shape.latent->nope_dim + shape.latent->rope_dim;
  shape.mixture = read_mixture(config, "n_routed_experts", 256, 8);
  RoutingRule& rule = shape.mixture->routing;
  rule.score = ScoreFunction::sigmoid;
  rule.normalise = config["norm_topk_prob"].boolean(true);
  rule.scale = config["routed_scaling_factor"].number(2.5);
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
  DecoderShape shape =
      read_common(config, Family::gpt_oss, {2880, 2880, 36, 64, 8, 64, 201088, 1e-5, 150000});
  require(config["attention_bias"].boolean(true), ExitCode::usage,
          "{}: \"attention_bias\" = false is not supported", config.where());
  if (config["rope_parameters"].is_null() && config["rope_scaling"].is_null()) {
    shape.yarn.emplace();
    shape.yarn->factor = 32;
    shape.yarn->truncate = false;
  }
  check_layer_types(config, shape.layers);
  shape.attention_biases = shape.sinks = true;
  shape.window = positive(config["sliding_window"], 128);
  shape.mixture = read_mixture(config, "num_local_experts", 128, 4);
  shape.mixture->routing.normalise = true;
  shape.mixture->hidden = shape.hidden;
  shape.mixture->biased = true;
  shape.mixture->clamped =
      ClampedGate{config["swiglu_alpha"].number(1.702), config["swiglu_limit"].number(7.0)};
  return shape;
}

}  // namespace

DecoderShape read_config(const std::filesystem::path& file) {
  const TextSource source{file, ExitCode::usage};
  const nlohmann::json parsed = parse(source);
  const JsonNode config(parsed, source);
  using Read = DecoderShape (*)(const JsonNode&);
  static const std::map<std::string, Read> readers{
      {"llama", read_llama},     {"qwen3", read_qwen3},          {"qwen3_moe", read_qwen3_moe},
      {"mixtral", read_mixtral}, {"deepseek_v3", read_deepseek}, {"gpt_oss", read_gpt_oss}};
  const std::string type = config["model_type"].string_or("llama");
  std::vector<std::string> known;
  for (const auto& [name, read] : readers) known.push_back(name);
  require(readers.contains(type), ExitCode::usage,
          "{}: model_type \"{}\" is not supported{}; use {}", file.string(), type,
          did_you_mean(type, known), fmt::join(known, ", "));
  DecoderShape shape = readers.at(type)(config);
  shape.name = type + " (" + file.filename().string() + ")";
  return shape;
}

}  // namespace tessera::hf
