#include "tessera/config/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>

#include "tessera/config/option_table.hpp"

namespace tessera::config {

namespace {

std::string folded(std::string_view word) {
  std::string out;
  for (const unsigned char c : word)
    if (c != '-' && c != '_') out += static_cast<char>(std::tolower(c));
  return out;
}

std::size_t tolerance(std::size_t letters) { return std::max<std::size_t>(letters / 3, letters > 3 ? 2 : 1); }

/// No more than the edits between two folded words: each takes at most one letter away and brings one.
std::size_t least_edits(std::string_view a, std::string_view b) {
  std::array<int, 256> surplus{};
  for (const unsigned char c : a) ++surplus[c];
  for (const unsigned char c : b) --surplus[c];
  int more = 0, fewer = 0;
  for (const int count : surplus) (count > 0 ? more : fewer) += std::abs(count);
  return static_cast<std::size_t>(std::max(more, fewer));
}

std::string long_form(std::string_view word) {
  static const std::map<std::string, std::string, std::less<>> kForms{
      {"bf16", "bfloat16"}, {"fp32", "float32"},  {"f32", "float32"},    {"fp16", "float16"},
      {"f16", "float16"},   {"half", "float16"},  {"double", "float64"}, {"f64", "float64"},
      {"fp64", "float64"},  {"float", "float32"}, {"off", "none"},       {"batchsize", "localbatchsize"},
      {"off_", "disabled"}, {"jsonl", "text"},    {"json", "text"}};
  const auto found = kForms.find(folded(word));
  return found == kForms.end() ? folded(word) : found->second;
}

/// Candidates that hold the word, or are held by it; words under four letters are in too many others.
std::optional<std::string> containing(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string needle = folded(word);
  if (needle.size() < 4) return {};
  const auto related = [&](const std::string& candidate) {
    const std::string other = folded(candidate);
    return other.find(needle) != other.npos || (other.size() >= 4 && needle.find(other) != needle.npos);
  };
  const auto found = std::ranges::find_if(candidates, related);
  return found == candidates.end() ? std::nullopt : std::optional(*found);
}

Strings leaves_in(std::string_view section) {
  Strings names;
  for (const Option& option : options())
    if (section_of(option.key) == section) names.emplace_back(leaf_of(option.key));
  return names;
}

Strings keys_with_leaf(std::string_view leaf) {
  Strings keys;
  for (const Option& option : options())
    if (leaf_of(option.key) == leaf) keys.emplace_back(option.key);
  return keys;
}

Strings all_keys() {
  Strings keys;
  for (const Option& option : options()) keys.emplace_back(option.key);
  return keys;
}

Strings all_leaves() {
  Strings leaves;
  for (const Option& option : options()) leaves.emplace_back(leaf_of(option.key));
  return leaves;
}

}  // namespace

std::size_t edit_distance(std::string_view first, std::string_view second) {
  const std::string a = folded(first), b = folded(second);
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
      if (second_above && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && second_above[j - 2] + 1 < least)
        least = second_above[j - 2] + 1;
      row[j] = least;
    }
  }
  return d.back();
}

std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 100 || candidates.empty()) return {};
  const std::string wanted = long_form(word);
  std::size_t least = tolerance(wanted.size()) + 1;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (least_edits(wanted, folded(candidate)) >= least) continue;
    if (const std::size_t edits = edit_distance(wanted, candidate); edits < least) least = edits, best = &candidate;
  }
  return best ? std::optional(*best) : containing(word, candidates);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto near = closest(word, candidates);
  return near ? fmt::format("; did you mean '{}'?", *near) : "";
}

std::optional<std::string> closest_key(std::string_view key) {
  if (key.size() > 100) return {};
  const std::string_view section = section_of(key), leaf = leaf_of(key);
  if (const auto exact = keys_with_leaf(leaf); !exact.empty()) return closest(key, exact).value_or(exact.front());
  if (const auto sibling = closest(leaf, leaves_in(section))) return fmt::format("{}.{}", section, *sibling);
  if (const auto whole = closest(key, all_keys()); whole && !section.empty() && !is_section(section)) return whole;
  if (const auto other = closest(leaf, all_leaves())) return keys_with_leaf(*other).front();
  return {};
}

}  // namespace tessera::config
