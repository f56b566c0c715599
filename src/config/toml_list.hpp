// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "tessera/config/option_table.hpp"

namespace tessera::config {

/// Of `["a", "b"]`, or `[["a"], ["b"]]`, in TOML: Strings, or vectors of them. Nothing where the
/// text is not that.
std::optional<Value> toml_list(std::string_view text);

}  // namespace tessera::config
