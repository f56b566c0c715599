// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the nearest of the words that would have been right.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The word in lower case, without `-` and `_`.
std::string folded(std::string_view word);

/// Edits (insert, delete, replace, swap neighbours) that turn one word into the other, ignoring
/// case, `-` and `_`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Words to choose from, prepared for comparison with many.
class Candidates {
 public:
  explicit Candidates(const std::vector<std::string>& words);

  /// The candidate nearest to `word`: a third of its letters may be wrong (two of a short word);
  /// else one that contains it, or its usual long form (bf16 -> bfloat16). Empty when nothing is
  /// near.
  std::optional<std::string> closest(std::string_view word) const;

 private:
  /// The letters of a folded word and how often it has each; those that share their last five bits
  /// count as one.
  struct Letters {
    explicit Letters(std::string_view word);
    std::array<std::int16_t, 32> counts{};
    std::uint32_t present = 0;
  };
  struct Candidate {
    std::string word, folded;
    Letters letters;
  };
  static bool need_edits(const Letters& a, const Letters& b, std::size_t edits);
  std::optional<std::string> containing(const std::string& needle) const;

  std::vector<Candidate> all_;
};

/// Candidates(candidates).closest(word).
std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tessera
