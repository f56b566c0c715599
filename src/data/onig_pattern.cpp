// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "regex.hpp"
#include "unicode_tables.hpp"

namespace tessera::data {
namespace {

// White_Space; PCRE2's \s adds U+180E and depends on its version.
constexpr std::string_view kSpace =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

std::string letters() { return "\\p{L}" + std::string(later_letters()); }
std::string numbers() { return "\\p{N}" + std::string(later_numbers()); }
std::string word() {
  return R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})" +
         std::string(other_word());
}

class Translator {
 public:
  Translator(std::string_view pattern, ExitCode code) : in_(pattern), code_(code) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (in_[at_] == '\\') {
        escape();
      } else if (in_class_) {
        inside_class();
      } else {
        in_class_ = in_[at_] == '[';
        class_begin_ = at_ + 1 + (in_.substr(at_ + 1, 1) == "^" ? 1 : 0);
        out_.push_back(in_[at_++]);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(code_,
         "the pattern '{}' uses {} at byte {}, which PCRE2 interprets differently; write the "
         "pattern without it",
         in_, what, at_);
  }

  void inside_class() {
    if (in_.substr(at_, 2) == "&&") refuse("an intersection of classes (&&)");
    if (in_[at_] == '[' && in_.substr(at_, 2) != "[:") refuse("a class inside a class");
    if (in_.substr(at_, 2) == "[:") {
      const std::size_t end = in_.find(":]", at_);
      if (end == in_.npos) refuse("an open POSIX class");
      out_ += in_.substr(at_, end + 2 - at_);
      at_ = end + 2;
      return;
    }
    if (in_[at_] == ']' && at_ != class_begin_) in_class_ = false;
    out_.push_back(in_[at_++]);
  }

  /// A class of characters, or of all others.
  void put(const std::string& members, bool negated) {
    if (in_class_ && negated) refuse("a negated class inside a class");
    out_ += in_class_ ? members : (negated ? "[^" : "[") + members + "]";
  }

  void escape() {
    const std::string_view two = in_.substr(at_, 2), five = in_.substr(at_, 5);
    if (two == "\\h" || two == "\\H") refuse("\\h (a hexadecimal digit)");
    if (two == "\\s" || two == "\\S") return at_ += 2, put(std::string(kSpace), two == "\\S");
    if (two == "\\w" || two == "\\W") return at_ += 2, put(word(), two == "\\W");
    if (five == "\\p{L}" || five == "\\P{L}") return at_ += 5, put(letters(), five == "\\P{L}");
    if (five == "\\p{N}" || five == "\\P{N}") return at_ += 5, put(numbers(), five == "\\P{N}");
    out_ += two;
    at_ += two.size();
  }

  std::string_view in_;
  ExitCode code_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t class_begin_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string translate_onig_pattern(std::string_view pattern, ExitCode code) {
  return Translator(pattern, code).run();
}

}  // namespace tessera::data
