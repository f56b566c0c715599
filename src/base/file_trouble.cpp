// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/file_trouble.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace tessera {

std::string file_trouble(const std::exception& error) {
  const auto* trouble = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (trouble == nullptr) return {};
  const std::string file =
      trouble->path1().empty() ? "a file" : "'" + trouble->path1().string() + "'";
  return fmt::format(
      "cannot read or write {} ({}); check the path, its permissions and the free space", file,
      trouble->code().message());
}

}  // namespace tessera
