// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/deterministic_form.hpp"

#include <fmt/format.h>

#include <string_view>

namespace tessera {

std::string without_deterministic_form(const std::exception& error) {
  constexpr std::string_view words = " does not have a deterministic implementation";
  const std::string_view text = error.what();
  const std::size_t at = text.find(words);
  if (at == text.npos) return {};
  const std::size_t begin = text.find_last_of(" \n", at - 1) + 1;  // npos + 1 is 0
  return fmt::format(
      "{} has no form that always gives the same bits on this GPU, and debug.deterministic = true; "
      "set "
      "debug.deterministic = false, or debug.deterministic_warn_only = true to use it all the same",
      text.substr(begin, at - begin));
}

}  // namespace tessera
