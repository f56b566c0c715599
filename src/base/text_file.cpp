// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/text_file.hpp"

#include <fstream>
#include <iterator>

namespace tessera {

std::optional<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return std::nullopt;
  return text;
}

}  // namespace tessera
