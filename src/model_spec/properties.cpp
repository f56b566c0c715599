// SPDX-License-Identifier: Apache-2.0
#include "tessera/model_spec/properties.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/json.hpp"

namespace tessera::model {
namespace {

/// As config.json states it: "none" for YaRN that TorchTitan's DeepSeek has beyond some length
/// only.
std::string scaling_of(const DecoderShape& shape) {
  if (const auto& s = shape.rope_scaling)
    return fmt::format("llama3({}, {}, {}, {})", s->factor, s->low_freq_factor, s->high_freq_factor,
                       s->original_max_position);
  const auto& y = shape.yarn;
  if (!y || y->only_beyond) return "none";
  return fmt::format("yarn({}, {}, {}, {}, {}, {:.6g}, {:.6g})", y->factor, y->beta_fast,
                     y->beta_slow, y->original_max_position, y->truncate, y->rotation_factor(),
                     y->softmax_factor());
}

void add_routing(Properties& all, const RoutingRule& rule) {
  all["num_experts_per_tok"] = fmt::format("{}", rule.top_k);
  all["scoring_func"] = rule.score == ScoreFunction::softmax ? "softmax" : "sigmoid";
  all["n_group"] = fmt::format("{}", rule.groups);
  all["topk_group"] = fmt::format("{}", rule.kept_groups);
  all["norm_topk_prob"] = fmt::format("{}", rule.normalise);
  all["routed_scaling_factor"] = fmt::format("{}", rule.scale);
}

}  // namespace

Properties properties_of(const DecoderShape& shape) {
  Properties all{{"num_attention_heads", fmt::format("{}", shape.heads)},
                 {"num_key_value_heads", fmt::format("{}", shape.kv_heads)},
                 {"rms_norm_eps", fmt::format("{}", shape.norm_eps)},
                 {"rope_theta", fmt::format("{}", shape.rope_theta)},
                 {"rope_scaling", scaling_of(shape)},
                 {"sliding_window", fmt::format("{}", shape.window)}};
  if (shape.latent) {
    all["qk_rope_head_dim"] = fmt::format("{}", shape.latent->rope_dim);
    all["latent_norm_eps"] = fmt::format("{}", shape.latent->norm_eps);
  }
  if (!shape.mixture) return all;
  add_routing(all, shape.mixture->routing);
  if (const auto& gate = shape.mixture->clamped)
    all["swiglu"] = fmt::format("limit {}, alpha {}", gate->limit, gate->alpha);
  return all;
}

Properties properties_for_others(DecoderShape shape, std::int64_t trained_positions) {
  shape.settle_yarn(trained_positions);
  return properties_of(shape);
}

Properties properties_in(std::string_view state) {
  const nlohmann::json stored = parse_json(state);
  Properties then;
  if (!stored.is_object() || !stored.contains(kPropertiesKey)) return then;
  if (const auto& all = stored[kPropertiesKey]; all.is_object())
    for (const auto& [name, value] : all.items())
      if (value.is_string()) then[name] = value.get<std::string>();
  // Earlier releases gave latents the epsilon of the other norms.
  if (then.contains("qk_rope_head_dim") && then.contains("rms_norm_eps"))
    then.emplace("latent_norm_eps", then["rms_norm_eps"]);
  return then;
}

std::string differences(const Properties& now, const Properties& then) {
  std::string found;
  for (const auto& [name, value] : now)
    if (const auto before = then.find(name); before != then.end() && before->second != value)
      found +=
          fmt::format("{}{} is {}, was {}", found.empty() ? "" : ", ", name, value, before->second);
  return found;
}

}  // namespace tessera::model
