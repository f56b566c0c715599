// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/closest_key.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "tessera/base/suggest.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::config {

namespace {

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
