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

/// Is "layers.2.moe.router.gate.weight" a parameter of module "moe.router.gate"? `module` is whole
/// words between dots.
bool is_of_module(std::string_view param, std::string_view module);

/// Throws Error(usage) for a pattern that is not a regular expression. `what` holds it: an option,
/// or words.
void require_pattern(const std::string& pattern, std::string_view what);

/// The same, and throws for a pattern that matches none of `names` (with the nearest of them).
void require_matches(const std::string& pattern, const std::vector<std::string>& names,
                     std::string_view what);

}  // namespace tessera
