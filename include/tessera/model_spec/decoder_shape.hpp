// SPDX-License-Identifier: Apache-2.0
// Decoder-only transformers: pre-norm RMSNorm, attention with RoPE, gated feed-forward layers or
// mixtures of experts. What the families of families.hpp are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/model_spec/routing_rule.hpp"

namespace tessera::model {

enum class Family : std::uint8_t { llama, qwen3, mixtral, deepseek_v3, gpt_oss };

/// RoPE frequency scaling of Llama 3.1 ("llama3" in Hugging Face's words).
struct RopeScaling {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_max_position = 8192;
};

/// YaRN (https://arxiv.org/abs/2309.00071): wavelengths that do not fit the original positions are
/// stretched by `factor`, those that fit often are kept; attention gets sharper to make up for it.
struct Yarn {
  double factor = 40, beta_fast = 32, beta_slow = 1;
  std::int64_t original_max_position = 4096;
  bool truncate = true;         ///< the bounds between the two are whole numbers
  double mscale = 0;            ///< 0 = none given
  double mscale_all_dim = 0;    ///< of the softmax' scale
  double attention_factor = 0;  ///< of cosines and sines; 0 = from the others
  bool only_beyond = false;     ///< TorchTitan's DeepSeek: none of it up to the original positions

  /// Does a model for this many positions have it?
  bool applies_to(std::int64_t positions) const {
    return !only_beyond || positions > original_max_position;
  }
  /// Of cosines and sines.
  double rotation_factor() const;
  /// Of the products of queries and keys.
  double softmax_factor() const;
};

/// Multi-head latent attention (DeepSeek-V2, https://arxiv.org/abs/2405.04434): queries, keys and
/// values are made from short vectors; one rotated key serves all heads.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0 = queries are made from the whole input
  std::int64_t rank = 512, nope_dim = 128, rope_dim = 64, value_dim = 128;
  double norm_eps = 1e-5;  ///< of the short vectors' norms
};

/// gpt-oss' gate: (clamp(up, +-limit) + 1) * g * sigmoid(alpha g), g = min(gate, limit).
struct ClampedGate {
  double alpha = 1.702, limit = 7;
};

struct MixtureShape {
  RoutingRule routing;
  std::int64_t hidden = 768;     ///< of one expert
  std::int64_t shared = 0;       ///< experts that every token passes, as one feed-forward layer
  std::int64_t first_dense = 0;  ///< layers before the first mixture
  bool biased = false;           ///< router and experts add biases
  std::optional<ClampedGate> clamped;
  double balance_rate = 0;      ///< see MixtureSpec; 0 = no bias for the choice
  double auxiliary = 0, z = 0;  ///< see BalanceLoss
};

struct DecoderShape {
  std::string name = "llama3 debugmodel";
  std::int64_t dim = 256, layers = 6, heads = 16, kv_heads = 16, head_dim = 16, hidden = 768,
               vocab = 2048;
  double norm_eps = 1e-5;
  double rope_theta = 500000;
  std::optional<RopeScaling> rope_scaling = RopeScaling{};
  bool tied = false;
  Family family = Family::llama;
  std::optional<Yarn> yarn;
  bool qk_norm = false;           ///< RMSNorm of each head's query and key
  bool attention_biases = false;  ///< of wq, wk, wv and wo
  bool sinks = false;             ///< a learnt logit without value in each head's softmax
  /// > 0: in every other layer, from the first, queries see this many keys
  std::int64_t window = 0;
  std::int64_t max_positions = 131072;  ///< what other programs may rely on; nothing computes it
  std::optional<LatentAttention> latent;
  std::optional<MixtureShape> mixture;

  bool is_mixture(std::int64_t layer) const { return mixture && layer >= mixture->first_dense; }
  /// Has YaRN from now on, or none, as a model for this many positions does.
  void settle_yarn(std::int64_t positions);
};

}  // namespace tessera::model
