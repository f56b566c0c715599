// SPDX-License-Identifier: Apache-2.0
// TorchTitan v0.2.2's flavors, and Mixtral's published sizes, which TorchTitan lacks.
#include <fmt/ranges.h>

#include <functional>
#include <map>

#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::model {
namespace {

DecoderShape llama(std::int64_t dim, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
                   std::int64_t multiple_of, std::optional<double> multiplier, std::int64_t vocab,
                   bool tied, double rope_factor) {
  DecoderShape shape;
  shape.dim = dim;
  shape.layers = layers;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = dim / heads;
  shape.hidden = llama_hidden(dim, multiple_of, multiplier);
  shape.vocab = vocab;
  shape.tied = tied;
  shape.rope_scaling->factor = rope_factor;
  return shape;
}

DecoderShape qwen3(std::int64_t dim, std::int64_t layers, std::int64_t heads, std::int64_t hidden,
                   bool tied, std::int64_t vocab = 151936) {
  DecoderShape shape;
  shape.family = Family::qwen3;
  shape.dim = dim;
  shape.layers = layers;
  shape.heads = heads;
  shape.kv_heads = 8;
  shape.head_dim = 128;
  shape.hidden = hidden;
  shape.vocab = vocab;
  shape.norm_eps = 1e-6;
  shape.rope_theta = 1000000;
  shape.rope_scaling.reset();
  shape.tied = tied;
  shape.qk_norm = true;
  return shape;
}

RoutingRule routing(std::int64_t experts, std::int64_t top_k, bool normalise) {
  RoutingRule rule;
  rule.experts = experts;
  rule.top_k = top_k;
  rule.normalise = normalise;
  return rule;
}

DecoderShape qwen3_moe(DecoderShape shape, std::int64_t kv_heads, std::int64_t experts,
                       std::int64_t expert_hidden, double theta) {
  shape.kv_heads = kv_heads;
  shape.rope_theta = theta;
  shape.mixture.emplace();
  shape.mixture->routing = routing(experts, 8, true);
  shape.mixture->hidden = expert_hidden;
  return shape;
}

DecoderShape mixtral(std::int64_t dim, std::int64_t layers, std::int64_t heads, std::int64_t hidden,
                     std::int64_t vocab) {
  DecoderShape shape;
  shape.family = Family::mixtral;
  shape.dim = dim;
  shape.layers = layers;
  shape.heads = heads;
  shape.kv_heads = 8;
  shape.head_dim = dim / heads;
  shape.hidden = hidden;
  shape.vocab = vocab;
  shape.rope_theta = 1000000;
  shape.rope_scaling.reset();
  shape.mixture.emplace();
  shape.mixture->routing = routing(8, 2, true);
  shape.mixture->hidden = hidden;
  return shape;
}

/// `sharp`: TorchTitan's mscale, the weight of YaRN's sharpening.
DecoderShape deepseek(std::int64_t dim, std::int64_t layers, std::int64_t heads,
                      std::int64_t hidden, std::int64_t expert_hidden, std::int64_t dense,
                      std::int64_t query_rank, RoutingRule rule, std::int64_t shared,
                      std::int64_t vocab, double sharp) {
  DecoderShape shape;
  shape.family = Family::deepseek_v3;
  shape.dim = dim;
  shape.layers = layers;
  shape.heads = shape.kv_heads = heads;
  shape.head_dim = 192;
  shape.hidden = hidden;
  shape.vocab = vocab;
  shape.rope_theta = 10000;
  shape.rope_scaling.reset();
  shape.yarn.emplace();
  shape.yarn->mscale_all_dim = sharp;
  shape.yarn->attention_factor = 1;
  shape.yarn->only_beyond = true;
  shape.latent.emplace();
  shape.latent->query_rank = query_rank;
  shape.mixture.emplace();
  shape.mixture->routing = rule;
  shape.mixture->hidden = expert_hidden;
  shape.mixture->shared = shared;
  shape.mixture->first_dense = dense;
  shape.mixture->balance_rate = 1e-3;
  return shape;
}

RoutingRule grouped(RoutingRule rule, std::int64_t groups, std::int64_t kept, double scale) {
  rule.groups = groups;
  rule.kept_groups = kept;
  rule.scale = scale;
  return rule;
}

RoutingRule by_sigmoid(RoutingRule rule) {
  rule.score = ScoreFunction::sigmoid;
  return rule;
}

DecoderShape gpt_oss(std::int64_t dim, std::int64_t layers, std::int64_t experts) {
  DecoderShape shape;
  shape.family = Family::gpt_oss;
  shape.dim = dim;
  shape.layers = layers;
  shape.heads = 64;
  shape.kv_heads = 8;
  shape.head_dim = 64;
  shape.hidden = 2880;
  shape.vocab = 201088;
  shape.rope_theta = 150000;
  shape.rope_scaling.reset();
  shape.yarn.emplace();
  shape.yarn->factor = 32;
  shape.yarn->truncate = false;
  shape.attention_biases = true;
  shape.sinks = true;
  shape.window = 128;
  shape.mixture.emplace();
  shape.mixture->routing = routing(experts, 4, true);
  shape.mixture->hidden = 2880;
  shape.mixture->biased = true;
  shape.mixture->clamped.emplace();
  shape.mixture->balance_rate = 1e-3;
  return shape;
}

using Flavors = std::vector<std::pair<std::string, std::function<DecoderShape()>>>;

/// Llama 3: 1B and 3B are Llama 3.2's (tied, RoPE factor 32).
Flavors llama_flavors() {
  const auto plain = std::optional<double>();
  return {{"debugmodel", [=] { return llama(256, 6, 16, 16, 256, plain, 2048, false, 8); }},
          {"1B", [] { return llama(2048, 16, 32, 8, 256, 1.5, 128256, true, 32); }},
          {"3B", [] { return llama(3072, 28, 24, 8, 256, 1.0, 128256, true, 32); }},
          {"8B", [] { return llama(4096, 32, 32, 8, 1024, 1.3, 128256, false, 8); }},
          {"70B", [] { return llama(8192, 80, 64, 8, 4096, 1.3, 128256, false, 8); }},
          {"405B", [] { return llama(16384, 126, 128, 8, 4096, 1.2, 128256, false, 8); }}};
}

Flavors qwen3_flavors() {
  return {
      {"debugmodel", [] { return qwen3(256, 8, 16, 3072, true, 2048); }},
      {"0.6B", [] { return qwen3(1024, 28, 16, 3072, true); }},
      {"1.7B", [] { return qwen3(2048, 28, 16, 6144, true); }},
      {"4B", [] { return qwen3(2560, 36, 32, 9728, true); }},
      {"8B", [] { return qwen3(4096, 36, 32, 12288, false); }},
      {"14B", [] { return qwen3(5120, 40, 40, 17408, false); }},
      {"32B", [] { return qwen3(5120, 64, 64, 25600, false); }},
      {"debugmodel_moe",
       [] { return qwen3_moe(qwen3(256, 8, 16, 3072, false, 2048), 8, 64, 768, 1000000); }},
      {"30B-A3B", [] { return qwen3_moe(qwen3(2048, 48, 32, 6144, false), 4, 128, 768, 1000000); }},
      {"235B-A22B",
       [] { return qwen3_moe(qwen3(4096, 94, 64, 12288, false), 4, 128, 1536, 5000000); }},
  };
}

Flavors mixtral_flavors() {
  return {{"debugmodel", [] { return mixtral(256, 6, 16, 512, 2048); }},
          {"8x7B", [] { return mixtral(4096, 32, 32, 14336, 32000); }},
          {"8x22B", [] { return mixtral(6144, 56, 48, 16384, 32768); }}};
}

Flavors deepseek_flavors() {
  const auto small = [] {
    return deepseek(256, 6, 16, 1024, 256, 1, 0, routing(8, 3, false), 2, 2048, 0.7);
  };
  const auto lite = [] {
    return deepseek(2048, 27, 16, 10944, 1408, 1, 0, routing(64, 6, false), 2, 102400, 0.7);
  };
  const auto v2 = [] {
    return deepseek(5120, 60, 128, 12288, 1536, 1, 1536, grouped(routing(160, 6, false), 8, 3, 16),
                    2, 102400, 1);
  };
  const auto v3 = [] {
    return deepseek(7168, 61, 128, 18432, 2048, 3, 1536,
                    by_sigmoid(grouped(routing(256, 8, true), 8, 4, 2.5)), 1, 129280, 1);
  };
  return {{"debugmodel", small}, {"16B", lite}, {"236B", v2}, {"671B", v3}};
}

Flavors gpt_oss_flavors() {
  return {{"debugmodel", [] { return gpt_oss(256, 4, 8); }},
          {"20b", [] { return gpt_oss(2880, 24, 32); }},
          {"120b", [] { return gpt_oss(2880, 36, 128); }}};
}

const std::vector<std::pair<std::string, Flavors>>& families() {
  static const std::vector<std::pair<std::string, Flavors>> all{{"llama3", llama_flavors()},
                                                                {"qwen3", qwen3_flavors()},
                                                                {"mixtral", mixtral_flavors()},
                                                                {"deepseek_v3", deepseek_flavors()},
                                                                {"gpt_oss", gpt_oss_flavors()}};
  return all;
}

/// The value under `name`; `key` and `what` are for the message that lists what there is.
template <class T>
const T& find(const std::vector<std::pair<std::string, T>>& table, const std::string& name,
              const char* key, const std::string& what) {
  std::vector<std::string> known;
  for (const auto& [entry, value] : table) {
    if (entry == name) return value;
    known.push_back(entry);
  }
  fail(ExitCode::usage, "{} \"{}\" is not {}{}; known are {}", key, name, what,
       did_you_mean(name, known), fmt::join(known, ", "));
}

}  // namespace

std::int64_t llama_hidden(std::int64_t dim, std::int64_t multiple_of,
                          std::optional<double> multiplier) {
  std::int64_t hidden = 8 * dim / 3;
  if (multiplier) hidden = static_cast<std::int64_t>(*multiplier * static_cast<double>(hidden));
  return (hidden + multiple_of - 1) / multiple_of * multiple_of;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& [name, flavors] : families()) names.push_back(name);
  return names;
}

std::vector<std::string> flavors_of(const std::string& family) {
  std::vector<std::string> names;
  for (const auto& [name, make] : find(families(), family, "model.name", "a family of models"))
    names.push_back(name);
  return names;
}

DecoderShape decoder_flavor(const std::string& family, const std::string& flavor) {
  const Flavors& flavors = find(families(), family, "model.name", "a family of models");
  DecoderShape shape = find(flavors, flavor, "model.flavor", "a flavor of " + family)();
  shape.name = family + " " + flavor;
  return shape;
}

}  // namespace tessera::model
