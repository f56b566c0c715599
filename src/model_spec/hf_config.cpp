// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "hf_reader.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::model {
namespace {

using nlohmann::json;

json parse(const std::filesystem::path& file) {
  std::ifstream in(file);
  require(in.good(), ExitCode::usage,
          "cannot open {} (model.hf_config); name a Hugging Face config.json", file.string());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  json parsed = parse_json(text);
  require(parsed.is_object(), ExitCode::usage,
          "{} is not a JSON object; name a Hugging Face config.json", file.string());
  return parsed;
}

RopeScaling llama3_scaling(const HfReader& reader) {
  RopeScaling scaling;
  scaling.factor = reader.get<double>("factor", scaling.factor);
  scaling.low_freq_factor = reader.get<double>("low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = reader.get<double>("high_freq_factor", scaling.high_freq_factor);
  scaling.original_max_position =
      reader.positive("original_max_position_embeddings", scaling.original_max_position);
  return scaling;
}

/// `positions`: what transformers takes for the original positions if the file does not say.
Yarn yarn_scaling(const HfReader& reader, std::int64_t positions) {
  Yarn yarn;
  yarn.original_max_position = reader.positive("original_max_position_embeddings", positions);
  require(reader.has("factor"), ExitCode::usage, "{}: YaRN needs \"factor\"", reader.where());
  yarn.factor = reader.get<double>("factor", 0);
  yarn.beta_fast = reader.get<double>("beta_fast", 32);
  yarn.beta_slow = reader.get<double>("beta_slow", 1);
  yarn.truncate = reader.get<bool>("truncate", true);
  yarn.mscale = reader.get<double>("mscale", 0);
  yarn.mscale_all_dim = reader.get<double>("mscale_all_dim", 0);
  yarn.attention_factor = reader.get<double>("attention_factor", 0);
  return yarn;
}

void read_scaling(DecoderShape& shape, const json* object, const HfReader& reader) {
  shape.rope_scaling.reset();
  if (!object) return;
  const HfReader inner(*object, reader.where());
  const auto type = inner.get<std::string>("rope_type", inner.get<std::string>("type", "default"));
  if (type == "llama3") {
    shape.rope_scaling = llama3_scaling(inner);
  } else if (type == "yarn") {
    shape.yarn = yarn_scaling(inner, reader.positive("max_position_embeddings", 4096));
  } else {
    require(type == "default", ExitCode::usage,
            "{}: RoPE scaling of type \"{}\" is not supported; use llama3, yarn or default",
            reader.where(), type);
  }
}

void read_rope(DecoderShape& shape, const HfReader& reader, double default_theta) {
  const json* parameters = reader.object("rope_parameters");  // transformers 5
  read_scaling(shape, parameters ? parameters : reader.object("rope_scaling"), reader);
  shape.rope_theta = reader.get<double>("rope_theta", default_theta);
  if (parameters)
    shape.rope_theta =
        HfReader(*parameters, reader.where()).get<double>("rope_theta", shape.rope_theta);
}

/// Defaults of a family's configuration class where the families differ.
struct Defaults {
  std::int64_t dim, hidden, layers, heads, kv_heads, head_dim,
      vocab;  ///< 0: kv_heads = heads, head_dim = dim / heads
  double eps, theta;
};

DecoderShape read_common(const HfReader& reader, Family family, const Defaults& d) {
  const auto activation = reader.get<std::string>("hidden_act", "silu");
  require(activation == "silu", ExitCode::usage, "{}: hidden_act \"{}\" is not supported; use silu",
          reader.where(), activation);
  DecoderShape shape;
  shape.family = family;
  shape.dim = reader.positive("hidden_size", d.dim);
  shape.layers = reader.positive("num_hidden_layers", d.layers);
  shape.heads = reader.positive("num_attention_heads", d.heads);
  shape.kv_heads =
      reader.positive("num_key_value_heads", d.kv_heads > 0 ? d.kv_heads : shape.heads);
  shape.head_dim = reader.positive(
      "head_dim", d.head_dim > 0 ? d.head_dim : std::max<std::int64_t>(1, shape.dim / shape.heads));
  shape.hidden = reader.positive("intermediate_size", d.hidden);
  shape.vocab = reader.positive("vocab_size", d.vocab);
  shape.norm_eps = reader.get<double>("rms_norm_eps", d.eps);
  shape.tied = reader.get<bool>("tie_word_embeddings", false);
  read_rope(shape, reader, d.theta);
  require(shape.heads % shape.kv_heads == 0, ExitCode::usage,
          "{}: {} attention heads are not a multiple of {} key-value heads", reader.where(),
          shape.heads, shape.kv_heads);
  require(shape.head_dim % 2 == 0, ExitCode::usage,
          "{}: head_dim {} must be even (RoPE rotates pairs)", reader.where(), shape.head_dim);
  return shape;
}

/// Experts of a token, and the auxiliary loss, which Hugging Face adds if the router's logits are
/// asked for.
MixtureShape read_mixture(const HfReader& reader, const char* experts_key, std::int64_t experts,
                          std::int64_t top_k) {
  MixtureShape mixture;
  const char* other =
      std::string_view(experts_key) == "num_local_experts" ? "num_experts" : "num_local_experts";
  mixture.routing.experts = reader.positive(experts_key, reader.positive(other, experts));
  mixture.routing.top_k = reader.positive("num_experts_per_tok", top_k);
  require(mixture.routing.top_k <= mixture.routing.experts, ExitCode::usage,
          "{}: {} experts a token, of {}", reader.where(), mixture.routing.top_k,
          mixture.routing.experts);
  if (reader.get<bool>("output_router_logits", false))
    mixture.auxiliary = reader.get<double>("router_aux_loss_coef", 0.001);
  return mixture;
}

DecoderShape read_llama(const HfReader& reader) {
  reader.refuse("attention_bias");
  reader.refuse("mlp_bias");
  return read_common(reader, Family::llama, {4096, 11008, 32, 32, 0, 0, 32000, 1e-6, 10000});
}

DecoderShape read_qwen3(const HfReader& reader) {
  reader.refuse("attention_bias");
  reader.refuse("use_sliding_window");
  DecoderShape shape =
      read_common(reader, Family::qwen3, {4096, 22016, 32, 32, 32, 128, 151936, 1e-6, 10000});
  shape.qk_norm = true;
  return shape;
}

DecoderShape read_qwen3_moe(const HfReader& reader) {
  reader.refuse("attention_bias");
  reader.refuse("use_sliding_window");
  DecoderShape shape =
      read_common(reader, Family::qwen3, {2048, 6144, 24, 32, 4, 0, 151936, 1e-6, 10000});
  shape.qk_norm = true;
  require(reader.get<std::int64_t>("decoder_sparse_step", 1) == 1 &&
              reader.get<std::vector<std::int64_t>>("mlp_only_layers", {}).empty(),
          ExitCode::usage,
          "{}: every layer must be a mixture (decoder_sparse_step 1, no mlp_only_layers)",
          reader.where());
  shape.mixture = read_mixture(reader, "num_experts", 128, 8);
  shape.mixture->routing.normalise = reader.get<bool>("norm_topk_prob", false);
  shape.mixture->hidden = reader.positive("moe_intermediate_size", 768);
  return shape;
}

DecoderShape read_mixtral(const HfReader& reader) {
  DecoderShape shape =
      read_common(reader, Family::mixtral, {4096, 14336, 32, 32, 8, 0, 32000, 1e-5, 1000000});
  require(!reader.has("sliding_window"), ExitCode::usage,
          "{}: \"sliding_window\" is not supported for model_type mixtral; set it to null",
          reader.where());
  shape.mixture = read_mixture(reader, "num_local_experts", 8, 2);
  shape.mixture->routing.normalise = true;
  shape.mixture->hidden = shape.hidden;
  return shape;
}

LatentAttention read_latent(const HfReader& reader) {
  LatentAttention latent;
  latent.query_rank = reader.has("q_lora_rank") ? reader.at_least(0, "q_lora_rank", 0) : 0;
  latent.rank = reader.positive("kv_lora_rank", 512);
  latent.nope_dim = reader.positive("qk_nope_head_dim", 128);
  latent.rope_dim = reader.positive("qk_rope_head_dim", 64);
  latent.value_dim = reader.positive("v_head_dim", 128);
  return latent;
}

void read_groups(RoutingRule& rule, const HfReader& reader) {
  rule.groups = reader.at_least(0, "n_group", 8);
  rule.kept_groups = reader.at_least(0, "topk_group", 4);
  if (rule.groups <= 1) rule.groups = rule.kept_groups = 0;
  require(rule.groups == 0 || (rule.experts % rule.groups == 0 && rule.experts / rule.groups >= 2 &&
                               rule.kept_groups >= 1 && rule.kept_groups <= rule.groups &&
                               rule.top_k <= rule.kept_groups * (rule.experts / rule.groups)),
          ExitCode::usage,
          "{}: {} experts in {} groups, of which {} are kept, do not give {} experts a token",
          reader.where(), rule.experts, rule.groups, rule.kept_groups, rule.top_k);
}

DecoderShape read_deepseek(const HfReader& reader) {
  reader.refuse("attention_bias");
  require(reader.get<bool>("rope_interleave", true), ExitCode::usage,
          "{}: \"rope_interleave\" = false is not supported", reader.where());
  const auto scoring = reader.get<std::string>("scoring_func", "sigmoid");
  require(scoring == "sigmoid", ExitCode::usage,
          "{}: scoring_func \"{}\" is not supported; use sigmoid", reader.where(), scoring);
  DecoderShape shape = read_common(reader, Family::deepseek_v3,
                                   {7168, 18432, 61, 128, 128, 64, 129280, 1e-6, 10000});
  require(shape.kv_heads == shape.heads, ExitCode::usage,
          "{}: latent attention has as many key-value heads as heads", reader.where());
  shape.latent = read_latent(reader);
  if (!reader.has("q_lora_rank")) shape.latent->query_rank = 0;
  shape.head_dim = shape.latent->nope_dim + shape.latent->rope_dim;
  shape.mixture = read_mixture(reader, "n_routed_experts", 256, 8);
  RoutingRule& rule = shape.mixture->routing;
  rule.score = ScoreFunction::sigmoid;
  rule.normalise = reader.get<bool>("norm_topk_prob", true);
  rule.scale = reader.get<double>("routed_scaling_factor", 2.5);
  read_groups(rule, reader);
  shape.mixture->hidden = reader.positive("moe_intermediate_size", 2048);
  shape.mixture->shared = reader.at_least(0, "n_shared_experts", 1);
  shape.mixture->first_dense =
      std::min(reader.at_least(0, "first_k_dense_replace", 3), shape.layers);
  shape.mixture->balance_rate = 1e-3;
  return shape;
}

/// Sliding windows in every other layer, from the first: the only order that gpt-oss was published
/// with.
void check_layer_types(const HfReader& reader, std::int64_t layers) {
  const auto types = reader.get<std::vector<std::string>>("layer_types", {});
  for (std::size_t i = 0; i < types.size(); ++i)
    require(types[i] == (i % 2 == 0 ? "sliding_attention" : "full_attention"), ExitCode::usage,
            "{}: layer_types must alternate, sliding_attention first", reader.where());
  require(types.empty() || static_cast<std::int64_t>(types.size()) == layers, ExitCode::usage,
          "{}: {} layer_types for {} layers", reader.where(), types.size(), layers);
}

DecoderShape read_gpt_oss(const HfReader& reader) {
  DecoderShape shape =
      read_common(reader, Family::gpt_oss, {2880, 2880, 36, 64, 8, 64, 201088, 1e-5, 150000});
  require(reader.get<bool>("attention_bias", true), ExitCode::usage,
          "{}: \"attention_bias\" = false is not supported", reader.where());
  if (!reader.has("rope_parameters") && !reader.has("rope_scaling")) {
    shape.yarn.emplace();
    shape.yarn->factor = 32;
    shape.yarn->truncate = false;
  }
  check_layer_types(reader, shape.layers);
  shape.attention_biases = shape.sinks = true;
  shape.window = reader.positive("sliding_window", 128);
  shape.mixture = read_mixture(reader, "num_local_experts", 128, 4);
  shape.mixture->routing.normalise = true;
  shape.mixture->hidden = shape.hidden;
  shape.mixture->biased = true;
  shape.mixture->clamped = ClampedGate{reader.get<double>("swiglu_alpha", 1.702),
                                       reader.get<double>("swiglu_limit", 7.0)};
  return shape;
}

}  // namespace

DecoderShape decoder_from_hf_config(const std::filesystem::path& file) {
  const json parsed = parse(file);
  const HfReader reader(parsed, file.string());
  using Read = DecoderShape (*)(const HfReader&);
  static const std::map<std::string, Read> readers{
      {"llama", read_llama},     {"qwen3", read_qwen3},          {"qwen3_moe", read_qwen3_moe},
      {"mixtral", read_mixtral}, {"deepseek_v3", read_deepseek}, {"gpt_oss", read_gpt_oss}};
  const auto type = reader.get<std::string>("model_type", "llama");
  std::vector<std::string> known;
  for (const auto& [name, read] : readers) known.push_back(name);
  require(readers.contains(type), ExitCode::usage,
          "{}: model_type \"{}\" is not supported{}; use {}", file.string(), type,
          did_you_mean(type, known), fmt::join(known, ", "));
  DecoderShape shape = readers.at(type)(reader);
  shape.name = type + " (" + file.filename().string() + ")";
  return shape;
}

}  // namespace tessera::model
