// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/document_lengths.hpp"

#include <array>
#include <bit>

namespace tessera::data {

std::vector<LengthClass> document_lengths(const TokenFile& file) {
  std::array<LengthClass, 65> classes{};
  for (std::int64_t document = 0; document < file.info().document_count; ++document) {
    const std::int64_t length = file.document(document).size;
    LengthClass& of =
        classes[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)))];
    ++of.documents;
    of.tokens += length;
  }
  std::vector<LengthClass> found;
  for (std::size_t bits = 0; bits < 63; ++bits) {
    if (classes[bits].documents == 0) continue;
    found.push_back(classes[bits]);
    found.back().least = bits == 0 ? 0 : std::int64_t{1} << (bits - 1);
    found.back().most = (std::int64_t{1} << bits) - 1;
  }
  return found;
}

}  // namespace tessera::data
