// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the nearest of the words that would have been right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::config {

/// Edits (insert, delete, replace, swap neighbours) that turn one word into the other, ignoring
/// case, `-` and `_`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`: a third of its letters may be wrong (two of a short word); else
/// one that contains it, or its usual long form (bf16 -> bfloat16). Empty when nothing is near.
std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// The key of the option table nearest to a whole key: the same name in another section, a misspelt
/// section, a misspelt name.
std::optional<std::string> closest_key(std::string_view key);

}  // namespace tessera::config
