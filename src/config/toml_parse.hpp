// SPDX-License-Identifier: Apache-2.0
// From a file to a table of toml++.
#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>

#include "draft.hpp"

namespace tessera::config {

/// The table in the file. What is wrong goes to the draft: a key that is given twice is a problem,
/// but the table then has its first value; otherwise it is empty.
std::optional<toml::table> parse_toml(const std::string& path, Draft& draft);

}  // namespace tessera::config
