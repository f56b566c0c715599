// SPDX-License-Identifier: Apache-2.0
// What the config.json of several families have in common.
#pragma once

#include <cstdint>

#include "tessera/base/json_reader.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::hf {

/// Beside a scaling of the rotary embedding, or within it.
inline constexpr const char* kOriginalPositions = "original_max_position_embeddings";

/// An object that is there and holds something: transformers takes {} for nothing.
bool has_values(const JsonNode& node);

/// A whole number, also where it is written as 4096.0.
std::int64_t at_least(std::int64_t least, const JsonNode& node, std::int64_t otherwise);
std::int64_t positive(const JsonNode& node, std::int64_t otherwise);
double above_zero(const JsonNode& node, double otherwise);

/// Refuses a feature that this family lacks here.
void refuse_if_set(const JsonNode& config, const char* key);

/// Defaults of a family's configuration class where the families differ.
struct Defaults {
  std::int64_t dim, hidden, layers, heads, kv_heads, head_dim,
      vocab;  ///< 0: kv_heads = heads, head_dim = dim / heads
  double eps, theta;
  std::int64_t max_positions;
};

model::DecoderShape read_common(const JsonNode& config, model::Family family, const Defaults& d);

/// Experts of a token, and the auxiliary loss, which Hugging Face adds if the router's logits are
/// asked for.
model::MixtureShape read_mixture(const JsonNode& config, const char* experts_key,
                                 std::int64_t experts, std::int64_t top_k);

}  // namespace tessera::hf
