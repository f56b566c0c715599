// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.hpp"

#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tessera/base/utf8.hpp"

namespace tessera::data {

struct Regex::Code {
  pcre2_code* code = nullptr;
  std::string pattern;
  Code(pcre2_code* made, std::string text) : code(made), pattern(std::move(text)) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

namespace {

/// for the interpreter, which takes the place of a missing JIT
constexpr std::uint32_t kHeapKibibytes = 256 << 10;
constexpr std::size_t kPatternBytes = 16
                                      << 10;  ///< the longest that tokenizers have is under 1 KiB

/// What a search writes to, one for each thread.
struct Scratch {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack =
      pcre2_jit_stack_create(std::size_t{64} << 10, std::size_t{16} << 20, nullptr);

  Scratch() {
    require(match && context, ExitCode::environment,
            "PCRE2 is out of memory; use a smaller pattern or more memory");
    pcre2_set_heap_limit(context, kHeapKibibytes);
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

Scratch& scratch() {
  thread_local Scratch instance;
  return instance;
}

std::string error_text(int number) {
  PCRE2_UCHAR buffer[256];
  const int length = pcre2_get_error_message(number, buffer, sizeof buffer);
  return length < 0 ? "error " + std::to_string(number)
                    : std::string(reinterpret_cast<const char*>(buffer));
}

/// A run of n blanks may cost n steps back: the limit grows with the text, so that only explosions
/// meet it.
std::uint32_t match_limit(std::size_t bytes) {
  constexpr std::uint64_t kLeast = 10'000'000;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(kLeast + 64 * bytes, std::numeric_limits<std::uint32_t>::max()));
}

int search(const pcre2_code* code, std::string_view text, std::size_t from, std::uint32_t flags,
           Match& match) {
  Scratch& s = scratch();
  pcre2_set_match_limit(s.context, match_limit(text.size()));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() ? text.data() : "");
  const int found = pcre2_match(code, subject, text.size(), from, flags, s.match, s.context);
  if (found >= 0) {
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(s.match);
    // \K can put the beginning anywhere: a match is in [from, end of text], so that searches one
    // after the other end.
    const std::size_t end = std::max<std::size_t>(from, bounds[1]);
    match = {std::clamp<std::size_t>(bounds[0], from, end), end};
  }
  return found;
}

}  // namespace

Regex Regex::make(const std::string& pattern, unsigned flags, ExitCode code) {
  require(pattern.size() <= kPatternBytes, code,
          "a pattern of {} bytes is too long; use at most {}", pattern.size(), kPatternBytes);
  int error = 0;
  PCRE2_SIZE where = 0;
  pcre2_code* made = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   flags | PCRE2_UTF, &error, &where, nullptr);
  require(made != nullptr, code,
          "the pattern '{}' is not a regular expression ({} at byte {}); correct it", pattern,
          error_text(error), where);
  pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);  // without JIT the interpreter does the same, slower
  return Regex(std::make_shared<const Code>(made, pattern));
}

Regex Regex::compile(std::string_view pattern, ExitCode code) {
  return make(translate_onig_pattern(pattern, code),
              PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, code);
}

Regex Regex::literal(std::string_view text) {
  return make(std::string(text), PCRE2_LITERAL, ExitCode::data);
}

bool Regex::find(std::string_view text, std::size_t from, Match& match) const {
  const int found = search(code_->code, text, from, PCRE2_NO_UTF_CHECK, match);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  require(found >= 0, ExitCode::data,
          "the pattern '{}' exceeds its limits on a text of {} bytes ({}); use a simpler pattern",
          code_->pattern, text.size(), error_text(found));
  return true;
}

bool Regex::matches_somewhere(std::string_view bytes) const {
  Match match;
  return valid_utf8_prefix(bytes) == bytes.size() && find(bytes, 0, match);
}

void Regex::for_each_piece(std::string_view text,
                           const std::function<void(std::string_view, bool)>& piece) const {
  std::size_t done = 0;
  Match match;
  for (std::size_t from = 0; from <= text.size() && find(text, from, match);) {
    if (match.begin > done) piece(text.substr(done, match.begin - done), false);
    if (match.end > match.begin) piece(text.substr(match.begin, match.end - match.begin), true);
    done = match.end;
    const bool empty = match.end == match.begin;
    from = match.end +
           (empty ? std::max<std::size_t>(1, first_code_point(text.substr(match.end)).bytes) : 0);
  }
  if (done < text.size()) piece(text.substr(done), false);
}

}  // namespace tessera::data
