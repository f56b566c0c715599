// SPDX-License-Identifier: Apache-2.0
// What a change of training.seq_len does to the attention of a model that resumes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::train {

/// A line for people where YaRN applies to sequences of `seq_len` positions and not to those of a
/// checkpoint, or the reverse; empty elsewhere. `toml`: the checkpoint's configuration.
std::string attention_change(const model::DecoderShape& shape, std::int64_t seq_len,
                             std::string_view toml);

}  // namespace tessera::train
