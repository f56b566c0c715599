// SPDX-License-Identifier: Apache-2.0
// Tables of Unicode in the versions that Hugging Face's tokenizers uses; made by
// make_unicode_tables.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::data {

struct CombiningRun {
  char32_t first, last;
  std::uint8_t combining_class;
};

/// Canonical decomposition of one step; `second` is 0 for a singleton.
struct Decomposition {
  char32_t code, first, second;
  bool composes;  ///< form C puts it together again
};

std::span<const CombiningRun> combining_runs();
std::span<const Decomposition> decompositions();
/// Letters and numbers that Unicode 15 and 16 added, as the inside of a PCRE2 character class.
std::string_view later_letters();
std::string_view later_numbers();
/// What \w matches beyond letters, marks, Nd, Nl and Pc of Unicode 14, from U+0100 on; in the same
/// form.
std::string_view other_word();

}  // namespace tessera::data
