// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdint>
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

std::size_t tolerance(std::size_t letters) {
  return std::max<std::size_t>(letters / 3, letters > 3 ? 2 : 1);
}

/// The letters of a folded word and how often it has each; those that share their last five bits
/// count as one.
struct Letters {
  explicit Letters(std::string_view word) {
    for (const unsigned char c : word) {
      ++counts[c % 32];
      present |= std::uint32_t{1} << c % 32;
    }
  }
  std::array<std::int16_t, 32> counts{};
  std::uint32_t present = 0;
};

/// Whether turning one word into the other takes at least so many edits for their letters alone: an
/// edit takes at most one letter away and brings one.
bool need_edits(const Letters& a, const Letters& b, std::size_t edits) {
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
      {"bf16", "bfloat16"},  {"fp32", "float32"}, {"f32", "float32"},
      {"fp16", "float16"},   {"f16", "float16"},  {"half", "float16"},
      {"double", "float64"}, {"f64", "float64"},  {"fp64", "float64"},
      {"float", "float32"},  {"off", "none"},     {"batchsize", "localbatchsize"},
      {"off_", "disabled"},  {"jsonl", "text"},   {"json", "text"}};
  const auto found = kForms.find(folded(word));
  return found == kForms.end() ? folded(word) : found->second;
}

/// Words to choose from, made ready to be compared with many.
class Candidates {
 public:
  explicit Candidates(const Strings& words) {
    for (const std::string& word : words)
      all_.push_back({word, folded(word), Letters(folded(word))});
  }

  std::optional<std::string> closest(std::string_view word) const {
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

 private:
  struct Candidate {
    std::string word, folded;
    Letters letters;
  };

  /// One that holds the word, or is held by it; words under four letters are in too many others.
  std::optional<std::string> containing(const std::string& needle) const {
    if (needle.size() < 4) return {};
    const auto related = [&](const Candidate& candidate) {
      const std::string& other = candidate.folded;
      return other.find(needle) != other.npos ||
             (other.size() >= 4 && needle.find(other) != needle.npos);
    };
    const auto found = std::ranges::find_if(all_, related);
    return found == all_.end() ? std::nullopt : std::optional(found->word);
  }

  std::vector<Candidate> all_;
};

/// The option table's keys, their last parts, and those by section and by last part.
struct Keys {
  std::optional<Candidates> whole, leaves;
  std::map<std::string_view, Candidates> leaves_in;
  std::map<std::string_view, Strings> with_leaf;
};

const Keys& keys() {
  static const Keys all = [] {
    Keys made;
    Strings whole, leaves;
    std::map<std::string_view, Strings> by_section;
    for (const Option& option : options()) {
      const std::string_view leaf = leaf_of(option.key);
      whole.emplace_back(option.key);
      leaves.emplace_back(leaf);
      by_section[section_of(option.key)].emplace_back(leaf);
      made.with_leaf[leaf].emplace_back(option.key);
    }
    made.whole.emplace(whole);
    made.leaves.emplace(leaves);
    for (const auto& [section, names] : by_section) made.leaves_in.emplace(section, names);
    return made;
  }();
  return all;
}

/// Words of other programs for a key's last part, folded.
std::string_view key_in_other_words(std::string_view leaf) {
  static const std::map<std::string, std::string_view, std::less<>> kWords{
      {"learningrate", "optimizer.lr"},
      {"maxlr", "optimizer.lr"},
      {"wd", "optimizer.weight_decay"},
      {"maxsteps", "training.steps"},
      {"numsteps", "training.steps"},
      {"trainiters", "training.steps"},
      {"epochs", "training.steps"},
      {"numepochs", "training.steps"},
      {"batchsize", "training.local_batch_size"},
      {"microbatchsize", "training.local_batch_size"},
      {"gradientaccumulationsteps", "training.global_batch_size"},
      {"sequencelength", "training.seq_len"},
      {"seqlength", "training.seq_len"},
      {"maxseqlen", "training.seq_len"},
      {"contextlength", "training.seq_len"},
      {"blocksize", "training.seq_len"},
      {"gradclip", "training.max_norm"},
      {"clipgrad", "training.max_norm"},
      {"maxgradnorm", "training.max_norm"},
      {"gradientclipping", "training.max_norm"},
      {"seed", "debug.seed"},
      {"outputdir", "job.dump_folder"},
      {"saveinterval", "checkpoint.interval"},
      {"savesteps", "checkpoint.interval"},
      {"tensormodelparallelsize", "parallelism.tensor_parallel_degree"},
      {"pipelinemodelparallelsize", "parallelism.pipeline_parallel_degree"},
      {"tokenizer", "model.hf_assets_path"},
      {"datapath", "training.dataset_path"}};
  const auto found = kWords.find(folded(leaf));
  return found == kWords.end() ? std::string_view{} : found->second;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  return edits_between(folded(a), folded(b));
}

std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  return Candidates(candidates).closest(word);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto near = closest(word, candidates);
  return near ? fmt::format("; did you mean '{}'?", *near) : "";
}

std::optional<std::string> closest_key(std::string_view key) {
  if (key.size() > 100) return {};
  const Keys& known = keys();
  const std::string_view section = section_of(key), leaf = leaf_of(key);
  if (const auto other = key_in_other_words(leaf); !other.empty()) return std::string(other);
  if (const auto exact = known.with_leaf.find(leaf); exact != known.with_leaf.end())
    return closest(key, exact->second).value_or(exact->second.front());
  if (const auto siblings = known.leaves_in.find(section); siblings != known.leaves_in.end())
    if (const auto sibling = siblings->second.closest(leaf))
      return fmt::format("{}.{}", section, *sibling);
  if (const auto whole = known.whole->closest(key);
      whole && !section.empty() && !is_section(section))
    return whole;
  // A key of a section that is there is hardly one of another: fault_tolerance.sync_steps is not
  // training.steps.
  const auto other = known.leaves->closest(leaf);
  const bool near = other && (!is_section(section) || edit_distance(*other, leaf) <= 2);
  return near ? std::optional(known.with_leaf.at(*other).front()) : std::nullopt;
}

}  // namespace tessera::config
