// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>

namespace tessera {
namespace {

std::size_t tolerance(std::size_t letters) {
  return std::max<std::size_t>(letters / 3, letters > 3 ? 2 : 1);
}

/// What edit_distance counts, of folded words.
std::size_t edits_between(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> d((a.size() + 1) * width);
  for (std::size_t j = 0; j <= b.size(); ++j) d[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t* row = &d[i * width];
    const std::size_t *above = row - width, *second_above = i > 1 ? above - width : nullptr;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t least = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < least) least = above[j] + 1;
      if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
      if (second_above && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          second_above[j - 2] + 1 < least)
        least = second_above[j - 2] + 1;
      row[j] = least;
    }
  }
  return d.back();
}

std::string long_form(std::string_view word) {
  static const std::map<std::string, std::string, std::less<>> kForms{
      {"bf16", "bfloat16"}, {"fp32", "float32"},  {"f32", "float32"},    {"fp16", "float16"},
      {"f16", "float16"},   {"half", "float16"},  {"double", "float64"}, {"f64", "float64"},
      {"fp64", "float64"},  {"float", "float32"}, {"off", "none"},       {"jsonl", "text"},
      {"json", "text"}};
  const auto found = kForms.find(folded(word));
  return found == kForms.end() ? folded(word) : found->second;
}

}  // namespace

std::string folded(std::string_view word) {
  std::string out;
  for (const unsigned char c : word)
    if (c != '-' && c != '_') out += static_cast<char>(std::tolower(c));
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  return edits_between(folded(a), folded(b));
}

Candidates::Letters::Letters(std::string_view word) {
  for (const unsigned char c : word) {
    ++counts[c % 32];
    present |= std::uint32_t{1} << c % 32;
  }
}

/// Whether turning one word into the other takes at least this many edits for their letters alone:
/// an edit takes at most one letter away and brings one.
bool Candidates::need_edits(const Letters& a, const Letters& b, std::size_t edits) {
  const int kinds =
      std::max(std::popcount(a.present & ~b.present), std::popcount(b.present & ~a.present));
  if (static_cast<std::size_t>(kinds) >= edits) return true;
  int more = 0, fewer = 0;
  for (std::size_t i = 0; i < a.counts.size(); ++i) {
    const int surplus = a.counts[i] - b.counts[i];
    more += std::max(surplus, 0), fewer += std::max(-surplus, 0);
  }
  return static_cast<std::size_t>(std::max(more, fewer)) >= edits;
}

Candidates::Candidates(const std::vector<std::string>& words) {
  for (const std::string& word : words) all_.push_back({word, folded(word), Letters(folded(word))});
}

std::optional<std::string> Candidates::closest(std::string_view word) const {
  if (word.size() > 100 || all_.empty()) return {};
  const std::string wanted = long_form(word);
  const Letters letters(wanted);
  std::size_t least = tolerance(wanted.size()) + 1;
  const Candidate* best = nullptr;
  for (const Candidate& candidate : all_) {
    if (need_edits(letters, candidate.letters, least)) continue;
    if (const std::size_t edits = edits_between(wanted, candidate.folded); edits < least)
      least = edits, best = &candidate;
  }
  return best ? std::optional(best->word) : containing(folded(word));
}

/// One that holds the word, or is held by it; words under four letters are in too many others.
std::optional<std::string> Candidates::containing(const std::string& needle) const {
  if (needle.size() < 4) return {};
  const auto related = [&](const Candidate& candidate) {
    const std::string& other = candidate.folded;
    return other.find(needle) != other.npos ||
           (other.size() >= 4 && needle.find(other) != needle.npos);
  };
  const auto found = std::ranges::find_if(all_, related);
  return found == all_.end() ? std::nullopt : std::optional(found->word);
}

std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  return Candidates(candidates).closest(word);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto near = closest(word, candidates);
  return near ? fmt::format("; did you mean '{}'?", *near) : "";
}

}  // namespace tessera
