// SPDX-License-Identifier: Apache-2.0
// The tokenizer whose ids a model knows, as checkpoints record it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::data {

/// Its key in a checkpoint's training state.
inline constexpr const char* kTokenizerKey = "tokenizer";

/// Of Tokenizer::content_hash(): 16 hexadecimal digits; "" for 0, a tokenizer that is not known.
std::string tokenizer_record(std::uint64_t content_hash);

/// The record in a training state; "" if it has none, as one of an earlier release.
std::string recorded_tokenizer(std::string_view state);

/// Are two records of different tokenizers? False if one of them is not known.
bool other_tokenizer(std::string_view one, std::string_view other);

}  // namespace tessera::data
