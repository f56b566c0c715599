// SPDX-License-Identifier: Apache-2.0
// The key that a misspelt one stands for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera::config {

/// The key of the option table nearest to a whole key: the same name in another section, a misspelt
/// section, a misspelt name. Empty when nothing is near.
std::optional<std::string> closest_key(std::string_view key);

}  // namespace tessera::config
