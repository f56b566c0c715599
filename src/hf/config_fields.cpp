// SPDX-License-Identifier: Apache-2.0
#include "config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::hf {

using namespace model;

namespace {

constexpr std::int64_t kMostLayers =
    10'000;  ///< a mistake beyond, which would take hours and much memory
constexpr const char* kPartialRotary = "partial_rotary_factor";

double from_zero(const JsonNode& node, double otherwise) {
  const double value = node.number(otherwise);
  if (!(value >= 0 && std::isfinite(value))) node.refuse(fmt::format("{} is below 0", value));
  return value;
}

/// transformers derives it from other values where it is null; where it is absent, the class has a
/// default (0: none).
std::int64_t derived_if_null(const JsonNode& config, const char* key, std::int64_t by_default,
                             std::int64_t derived) {
  const bool absent = !config.object().contains(key);
  return positive(config[key], absent && by_default > 0 ? by_default : derived);
}

/// Of the model before it was stretched. transformers: the one beside the scaling, else the one
/// within it, else max_position_embeddings.
std::int64_t original_positions(const JsonNode& scaling, const JsonNode& config,
                                std::int64_t max_positions) {
  return positive(config[kOriginalPositions], positive(scaling[kOriginalPositions], max_positions));
}

double needed(const JsonNode& node, const char* by) {
  if (node.is_null()) node.refuse(fmt::format("{} needs it", by));
  return above_zero(node, 1);
}

/// Refuses what has no effect: a misspelt key would leave a default in its place. `type`: "" where
/// none is named.
void check_scaling_keys(const JsonNode& scaling, const std::string& type,
                        std::vector<std::string> known) {
  known.insert(known.end(), {"rope_type", "type", "rope_theta", kPartialRotary});
  for (const auto& [key, value] : scaling.object().items()) {
    if (value.is_null() || std::ranges::find(known, key) != known.end()) continue;
    if (type.empty())
      scaling[key].refuse("it has no effect without \"rope_type\"; name one, or remove the key");
    scaling[key].refuse(
        fmt::format("RoPE scaling of type \"{}\" has no such key{}; correct or remove it", type,
                    did_you_mean(key, known)));
  }
}

RopeScaling llama3_scaling(const JsonNode& config, std::int64_t original) {
  if (config["mscale_all_dim"].number(0) != 0)
    config["mscale_all_dim"].refuse("it is supported with YaRN alone");
  check_scaling_keys(config, "llama3",
                     {"factor", "low_freq_factor", "high_freq_factor", kOriginalPositions});
  return {needed(config["factor"], "llama3"), needed(config["low_freq_factor"], "llama3"),
          needed(config["high_freq_factor"], "llama3"), original};
}

/// "finetuned" is in published files, for programs that stretch untrained models.
Yarn yarn_scaling(const JsonNode& config, std::int64_t original) {
  check_scaling_keys(config, "yarn",
                     {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
                      "attention_factor", "truncate", "finetuned", kOriginalPositions});
  Yarn yarn;
  yarn.original_max_position = original;
  yarn.factor = needed(config["factor"], "YaRN");
  yarn.beta_fast = above_zero(config["beta_fast"], 32);
  yarn.beta_slow = above_zero(config["beta_slow"], 1);
  yarn.truncate = config["truncate"].boolean(true);
  yarn.mscale = from_zero(config["mscale"], 0);
  yarn.mscale_all_dim = from_zero(config["mscale_all_dim"], 0);
  if (const JsonNode factor = config["attention_factor"]; !factor.is_null())
    yarn.attention_factor = above_zero(factor, 1);
  return yarn;
}

/// `scaling` is null where nothing is scaled.
void read_scaling(DecoderShape& shape, const JsonNode& scaling, const JsonNode& config) {
  shape.rope_scaling.reset();
  if (scaling.is_null()) return;
  const std::string named = scaling["rope_type"].string_or(scaling["type"].string_or(""));
  const std::int64_t original = original_positions(scaling, config, shape.max_positions);
  if (named == "llama3") {
    shape.rope_scaling = llama3_scaling(scaling, original);
  } else if (named == "yarn") {
    shape.yarn = yarn_scaling(scaling, original);
  } else {
    require(named.empty() || named == "default", ExitCode::usage,
            "{}: RoPE scaling of type \"{}\" is not supported; use llama3, yarn or default",
            scaling.where(), named);
    check_scaling_keys(scaling, named, {});
  }
}

void refuse_partial_rotary(const JsonNode& config) {
  if (const JsonNode factor = config[kPartialRotary]; factor.number(1) != 1)
    factor.refuse(fmt::format("{} is not supported: Tessera rotates whole heads, as 1 does",
                              factor.number(1)));
}

/// transformers 4 has rope_scaling and rope_theta, transformers 5 has rope_parameters. Where
/// rope_scaling holds something, it replaces rope_parameters, with the theta in it.
void read_rope(DecoderShape& shape, const JsonNode& config, double default_theta) {
  const JsonNode parameters = config["rope_parameters"], scaling = config["rope_scaling"];
  const JsonNode& used = has_values(scaling) ? scaling : parameters;
  refuse_partial_rotary(config);
  if (has_values(used)) refuse_partial_rotary(used);
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
    node.refuse(fmt::format("{} is not a whole number from {} to {}", value, least,
                            std::numeric_limits<std::int32_t>::max()));
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
  if (shape.layers > kMostLayers)
    config["num_hidden_layers"].refuse(
        fmt::format("{} is more than {}, the most layers of a model", shape.layers, kMostLayers));
  shape.heads = positive(config["num_attention_heads"], d.heads);
  shape.kv_heads = derived_if_null(config, "num_key_value_heads", d.kv_heads, shape.heads);
  shape.head_dim = derived_if_null(config, "head_dim", d.head_dim,
                                   std::max<std::int64_t>(1, shape.dim / shape.heads));
  shape.hidden = positive(config["intermediate_size"], d.hidden);
  shape.vocab = positive(config["vocab_size"], d.vocab);
  shape.norm_eps = above_zero(config["rms_norm_eps"], d.eps);
  shape.max_positions = positive(config["max_position_embeddings"], d.max_positions);
  shape.tied = config["tie_word_embeddings"].boolean(false);
  read_rope(shape, config, d.theta);
  require(shape.heads % shape.kv_heads == 0, ExitCode::usage,
          "{}: {} attention heads are not a multiple of {} key-value heads", config.where(),
          shape.heads, shape.kv_heads);
  require(shape.head_dim % 2 == 0 || family == Family::deepseek_v3, ExitCode::usage,
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
  const double auxiliary = from_zero(config["router_aux_loss_coef"], 0.001);
  if (config["output_router_logits"].boolean(false)) mixture.auxiliary = auxiliary;
  return mixture;
}

}  // namespace tessera::hf
