// SPDX-License-Identifier: Apache-2.0
// Unicode normalisation form C (UAX #15), with the tables that Hugging Face's tokenizers has.
#pragma once

#include <string>
#include <string_view>

namespace tessera::data {

/// Whether `text` is certainly in form C already, by a look at its bytes: nothing at or above
/// U+0300 in it.
bool is_plainly_nfc(std::string_view text) noexcept;
/// Form C of `text`, which must be UTF-8.
std::string to_nfc(std::string_view text);

}  // namespace tessera::data
