// SPDX-License-Identifier: Apache-2.0
// Small files read whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

/// The bytes of a file (also of those in /proc, which have no size); empty optional where it cannot
/// be read, as a folder cannot.
std::optional<std::string> read_text(const std::filesystem::path& file);

}  // namespace tessera
