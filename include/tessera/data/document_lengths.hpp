// SPDX-License-Identifier: Apache-2.0
// How long the documents of a token file are.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/data/token_file.hpp"

namespace tessera::data {

/// Documents of `least` to `most` tokens: 0, 1, 2 to 3, 4 to 7 ...
struct LengthClass {
  std::int64_t least = 0, most = 0;
  std::int64_t documents = 0, tokens = 0;
};

/// The classes that have documents, rising. Reads the whole index; throws Error(data) where it is
/// damaged.
std::vector<LengthClass> document_lengths(const TokenFile& file);

}  // namespace tessera::data
