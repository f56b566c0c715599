// SPDX-License-Identifier: Apache-2.0
// What a model computes that the shapes of its tensors do not show.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// Values as text, by Hugging Face's names: "rope_theta" -> "500000".
using Properties = std::map<std::string, std::string>;

/// Under which the training state of a checkpoint has them.
inline constexpr const char* kPropertiesKey = "model";

/// Heads, rotary embedding, epsilon of the norms, window, and the choice of experts.
Properties properties_of(const DecoderShape& shape);

/// The same as another program describes a model that was trained on so many positions: with YaRN
/// if they exceed those of a YaRN of `only_beyond`, which a checkpoint does not name.
Properties properties_for_others(DecoderShape shape, std::int64_t trained_positions);

/// Those in the training state of a checkpoint; none if it says nothing of them.
Properties properties_in(std::string_view state);

/// "rope_theta is 10000, was 500000": where two models differ; "" where they do not. What only one
/// of them names does not count: other releases may name more.
std::string differences(const Properties& now, const Properties& then);

}  // namespace tessera::model
