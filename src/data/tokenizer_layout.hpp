// SPDX-License-Identifier: Apache-2.0
// How a family of models writes its tokenizer.json: what surrounds vocabulary and merges.
#pragma once

#include <nlohmann/json.hpp>

#include "tessera/data/tokenizer_trainer.hpp"

namespace tessera::data {

/// Values of "pre_tokenizer" and "normalizer".
nlohmann::ordered_json pre_tokenizer_layout(Pattern pattern);
nlohmann::ordered_json normalizer_layout(Pattern pattern);
bool normalizes(Pattern pattern);

/// BOS and EOS among the special tokens: of two the first and the second, a single one is EOS; -1
/// for none.
struct SpecialRoles {
  int bos = -1;
  int eos = -1;
};
SpecialRoles special_roles(std::size_t special_tokens);

}  // namespace tessera::data
