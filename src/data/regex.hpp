// SPDX-License-Identifier: Apache-2.0
// PCRE2, reduced to the one search that tokenizers need. Patterns are written as Hugging Face's
// tokenizers reads them (Oniguruma's syntax, Unicode 16); where PCRE2 means something else by them,
// they are translated or refused.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::data {

/// The same pattern for PCRE2 with UTF and UCP: \s, \S, \w, \W, \p{L} and \p{N} become classes of
/// Unicode 16. Throws Error(code) for syntax that would change its meaning.
std::string translate_onig_pattern(std::string_view pattern, ExitCode code);

struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A compiled pattern; thread-safe.
class Regex {
 public:
  /// Throws Error(code) with the place of the mistake.
  static Regex compile(std::string_view pattern, ExitCode code = ExitCode::data);
  /// Matches `text` itself.
  static Regex literal(std::string_view text);

  /// First match at or after `from` in `text`, which must be UTF-8. Throws Error(data) beyond the
  /// match limit.
  bool find(std::string_view text, std::size_t from, Match& match) const;
  /// As find, but takes any bytes: false when they are not UTF-8.
  bool matches_somewhere(std::string_view bytes) const;
  /// Calls `piece(text, is_match)` for each match and each non-empty stretch between matches, in
  /// order.
  void for_each_piece(std::string_view text,
                      const std::function<void(std::string_view, bool)>& piece) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  static Regex make(const std::string& pattern, unsigned flags, ExitCode code);
  std::shared_ptr<const Code> code_;
};

}  // namespace tessera::data
