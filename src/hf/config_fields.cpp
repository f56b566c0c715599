// SPDX-License-Identifier: Apache-2.0
#include "config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"

namespace tessera::hf {

using namespace model;

namespace {

/// Of the model before it was stretched. transformers: the one beside the scaling, else the one
/// within it, else max_position_embeddings.
std::int64_t original_positions(const JsonNode& scaling, const JsonNode& config,
                                std::int64_t otherwise) {
  const std::int64_t most = positive(config["max_position_embeddings"], otherwise);
  return positive(config[kOriginalPositions], positive(scaling[kOriginalPositions], most));
}

RopeScaling llama3_scaling(const JsonNode& config, const JsonNode& model) {
  RopeScaling scaling;
  if (config["mscale_all_dim"].number(0) != 0)
    config["mscale_all_dim"].refuse("it is supported with YaRN alone");
  scaling.factor = above_zero(config["factor"], scaling.factor);
  scaling.low_freq_factor = above_zero(config["low_freq_factor"], scaling.low_freq_factor);
  scaling.high_freq_factor = above_zero(config["high_freq_factor"], scaling.high_freq_factor);
  scaling.original_max_position = original_positions(config, model, scaling.original_max_position);
  return scaling;
}

Yarn yarn_scaling(const JsonNode& config, const JsonNode& model) {
  Yarn yarn;
  yarn.original_max_position = original_positions(config, model, yarn.original_max_position);
  if (config["factor"].is_null()) config["factor"].refuse("YaRN needs it");
  yarn.factor = above_zero(config["factor"], 1);
  yarn.beta_fast = above_zero(config["beta_fast"], 32);
  yarn.beta_slow = above_zero(config["beta_slow"], 1);
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
    shape.rope_scaling = llama3_scaling(scaling, config);
  } else if (type == "yarn") {
    shape.yarn = yarn_scaling(scaling, config);
  } else {
    require(type == "default", ExitCode::usage,
            "{}: RoPE scaling of type \"{}\" is not supported; use llama3, yarn or default",
            scaling.where(), type);
  }
}

/// transformers 4 has rope_scaling and rope_theta, transformers 5 has rope_parameters. Where
/// rope_scaling holds something, it replaces rope_parameters, with the theta in it.
void read_rope(DecoderShape& shape, const JsonNode& config, double default_theta) {
  const JsonNode parameters = config["rope_parameters"], scaling = config["rope_scaling"];
  const JsonNode& used = has_values(scaling) ? scaling : parameters;
  read_scaling(shape, used, config);
  const auto theta_of = [&](const JsonNode& rope) {
    const double theta = above_zero(config["rope_theta"], default_theta);
    return has_values(rope) ? above_zero(rope["rope_theta"], theta) : theta;
  };
  shape.rope_theta = theta_of(used);
  if (has_values(scaling) && has_values(parameters) && theta_of(parameters) != shape.rope_theta)
    scaling.refuse(fmt::format(
        "it replaces rope_parameters, whose rope_theta is {}, and has {}; set its rope_theta",
        theta_of(parameters), shape.rope_theta));
}

}  // namespace

bool has_values(const JsonNode& node) { return !node.is_null() && !node.object().empty(); }

std::int64_t at_least(std::int64_t least, const JsonNode& node, std::int64_t otherwise) {
  const double value = node.number(static_cast<double>(otherwise));
  if (value != std::floor(value) || value < static_cast<double>(least) || value >= 0x1p31)
    node.refuse(fmt::format("{} is not a whole number from {}", value, least));
  return static_cast<std::int64_t>(value);
}

double above_zero(const JsonNode& node, double otherwise) {
  const double value = node.number(otherwise);
  if (!(value > 0 && std::isfinite(value))) node.refuse(fmt::format("{} is not above 0", value));
  return value;
}

std::int64_t positive(const JsonNode& node, std::int64_t otherwise) {
  return at_least(1, node, otherwise);
}

void refuse_if_set(const JsonNode& config, const char* key) {
  if (config[key].boolean(false))
    config[key].refuse("true is not supported for this kind of model");
}

DecoderShape read_common(const JsonNode& config, Family family, const Defaults& d) {
  const auto activation = config["hidden_act"].string_or("silu");
  require(activation == "silu", ExitCode::usage, "{}: hidden_act \"{}\" is not supported; use silu",
          config.where(), activation);
  for (const char* noise : {"attention_dropout", "router_jitter_noise"})
    if (config[noise].number(0) != 0) config[noise].refuse("Tessera adds no noise; set it to 0");
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
  shape.norm_eps = above_zero(config["rms_norm_eps"], d.eps);
  shape.max_positions = positive(config["max_position_embeddings"], shape.max_positions);
  shape.tied = config["tie_word_embeddings"].boolean(false);
  read_rope(shape, config, d.theta);
  require(shape.heads % shape.kv_heads == 0, ExitCode::usage,
          "{}: {} attention heads are not a multiple of {} key-value heads", config.where(),
          shape.heads, shape.kv_heads);
  require(shape.head_dim % 2 == 0, ExitCode::usage,
          "{}: head_dim {} must be even (RoPE rotates pairs)", config.where(), shape.head_dim);
  return shape;
}

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

}  // namespace tessera::hf
