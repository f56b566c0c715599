// SPDX-License-Identifier: Apache-2.0
// Patterns that choose parameters, units and tensors by name: regular expressions (ECMAScript),
// found anywhere in the name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Is the pattern found in the name? The pattern has passed a check below.
bool matches(const std::string& pattern, std::string_view name);

/// Throws Error(usage) for a pattern that is not a regular expression. `what` holds it: an option,
/// or words.
void require_pattern(const std::string& pattern, std::string_view what);

/// The same, and throws for a pattern that matches none of `names` (with the nearest of them).
void require_matches(const std::string& pattern, const std::vector<std::string>& names,
                     std::string_view what);

}  // namespace tessera
