// SPDX-License-Identifier: Apache-2.0
// toml++ 3.3 recurses once for each part of a dotted key and for each bracket, in parsing and in
// destruction: a file with 200,000 dots overflows its stack. So what it gets is bounded first.
#include <fmt/format.h>

#include "draft.hpp"

namespace tessera::config {

namespace {

constexpr int kDots = 32, kBrackets = 32;
constexpr std::size_t kLineBytes = 64 << 10;

/// Walks over TOML text far enough to distinguish brackets and dots of keys from those in strings
/// and comments.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// What is beyond the bounds, or nothing.
  std::string run() {
    while (at_ < text_.size()) {
      if (const auto beyond = step(); !beyond.empty()) return beyond;
    }
    return {};
  }
  int line() const { return line_; }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

 private:
  std::string step() {
    const char c = text_[at_];
    if (c == '\n') return end_line(), std::string{};
    if (at_ - line_start_ >= kLineBytes)
      return fmt::format("a line is longer than {} bytes", kLineBytes);
    if (c == '#') return skip_to(text_.find('\n', at_)), std::string{};
    if (c == '"' || c == '\'') return skip_string(c), std::string{};
    ++at_;
    return count(c);
  }

  std::string count(char c) {
    if (c == '.' && ++dots_ > kDots) return fmt::format("a key has more than {} parts", kDots);
    if ((c == '[' || c == '{') && ++brackets_ > kBrackets)
      return fmt::format("brackets are nested deeper than {}", kBrackets);
    if (c == ']' || c == '}') --brackets_;
    if (c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}') dots_ = 0;
    return {};
  }

  void end_line() { ++line_, line_start_ = ++at_, dots_ = 0; }

  void skip_to(std::size_t where) { at_ = std::min(where, text_.size()); }

  void skip_string(char quote) {
    const std::string fence(3, quote);
    const bool multiline = text_.substr(at_, 3) == fence;
    at_ += multiline ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !multiline) return;
      if (c == '\\' && quote == '"') {
        at_ += 2;
        continue;
      }
      if (c == quote && (!multiline || text_.substr(at_, 3) == fence)) {
        at_ += multiline ? 3 : 1;
        // Up to two quotes right before the fence belong to the string: its end is the last of
        // them.
        for (int more = 0; multiline && more < 2 && text_.substr(at_, 1) == fence.substr(0, 1);
             ++more)
          ++at_;
        return;
      }
      if (c == '\n') ++line_, line_start_ = at_ + 1;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1, dots_ = 0, brackets_ = 0;
};

}  // namespace

bool within_bounds(std::string_view text, const std::string& path, Draft& draft) {
  Scanner scanner(text);
  const std::string beyond = scanner.run();
  if (beyond.empty()) return true;
  draft.complain({path, scanner.line(), scanner.column()}, beyond + "; shorten it");
  return false;
}

}  // namespace tessera::config
