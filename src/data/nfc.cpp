// SPDX-License-Identifier: Apache-2.0
#include "nfc.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "tessera/base/utf8.hpp"
#include "unicode_tables.hpp"

namespace tessera::data {
namespace {

// Hangul syllables are composed by arithmetic (Unicode, section 3.12).
constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

bool within(char32_t code, char32_t base, char32_t count) {
  return code >= base && code < base + count;
}

int combining_class(char32_t code) {
  const auto runs = combining_runs();
  const auto run = std::lower_bound(runs.begin(), runs.end(), code,
                                    [](const CombiningRun& r, char32_t c) { return r.last < c; });
  return run != runs.end() && run->first <= code ? run->combining_class : 0;
}

void decompose(char32_t code, std::u32string& out) {
  if (within(code, kSBase, kSCount)) {
    const char32_t s = code - kSBase, t = s % kTCount;
    out += {kLBase + s / (kVCount * kTCount), kVBase + s % (kVCount * kTCount) / kTCount};
    if (t != 0) out.push_back(kTBase + t);
    return;
  }
  const auto table = decompositions();
  const auto found =
      std::lower_bound(table.begin(), table.end(), code,
                       [](const Decomposition& d, char32_t c) { return d.code < c; });
  if (found == table.end() || found->code != code) return out.push_back(code);
  decompose(found->first, out);
  if (found->second != 0) decompose(found->second, out);
}

std::uint64_t pair_key(char32_t first, char32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | second;
}

/// The character that two compose to, or 0.
char32_t composite(char32_t first, char32_t second) {
  if (within(first, kLBase, kLCount) && within(second, kVBase, kVCount)) {
    return kSBase + ((first - kLBase) * kVCount + (second - kVBase)) * kTCount;
  }
  if (within(first, kSBase, kSCount) && (first - kSBase) % kTCount == 0 &&
      within(second, kTBase + 1, kTCount - 1)) {
    return first + (second - kTBase);
  }
  static const auto pairs = [] {
    std::unordered_map<std::uint64_t, char32_t> made;
    for (const Decomposition& d : decompositions()) {
      if (d.composes) made.emplace(pair_key(d.first, d.second), d.code);
    }
    return made;
  }();
  const auto found = pairs.find(pair_key(first, second));
  return found == pairs.end() ? 0 : found->second;
}

struct Mark {
  char32_t code;
  int combining_class;
};

/// Appends a starter and the marks after it, in canonical order and composed; `starter` may be
/// absent (0).
class Composer {
 public:
  explicit Composer(std::u32string& out) : out_(out) {}

  void take(char32_t code) {
    const int ccc = combining_class(code);
    if (ccc != 0) return marks_.push_back({code, ccc});
    flush_marks();
    const bool adjacent = starter_ != npos && starter_ + 1 == out_.size();
    if (const char32_t made = adjacent ? composite(out_[starter_], code) : 0) {
      out_[starter_] = made;
    } else {
      starter_ = out_.size();
      out_.push_back(code);
    }
  }

  void flush_marks() {
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    int last_kept = 0;
    for (const Mark& mark : marks_) {
      const bool free = starter_ != npos && last_kept < mark.combining_class;
      if (const char32_t made = free ? composite(out_[starter_], mark.code) : 0) {
        out_[starter_] = made;
      } else {
        last_kept = mark.combining_class;
        out_.push_back(mark.code);
      }
    }
    marks_.clear();
  }

 private:
  static constexpr std::size_t npos = std::u32string::npos;
  std::u32string& out_;
  std::size_t starter_ = npos;
  std::vector<Mark> marks_;
};

}  // namespace

bool is_plainly_nfc(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<std::uint8_t>(c) < 0xCC; });
}

std::string to_nfc(std::string_view text) {
  if (is_plainly_nfc(text)) return std::string(text);
  std::u32string composed, parts;
  Composer composer(composed);
  while (!text.empty()) {
    const CodePoint code = first_code_point(text);
    text.remove_prefix(code.bytes);
    parts.clear();
    decompose(code.value, parts);
    for (const char32_t part : parts) composer.take(part);
  }
  composer.flush_marks();
  std::string out;
  for (const char32_t code : composed) append_utf8(out, code);
  return out;
}

}  // namespace tessera::data
