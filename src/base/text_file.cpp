// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/text_file.hpp"

#include <fstream>
#include <iterator>

namespace tessera {

std::optional<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  try {
    return std::string{std::istreambuf_iterator<char>(in), {}};
  } catch (const std::ios_base::failure&) {  // a folder can be opened, and not be read
    return std::nullopt;
  }
}

}  // namespace tessera
