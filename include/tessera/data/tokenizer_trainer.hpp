// SPDX-License-Identifier: Apache-2.0
// Trains byte-level BPE and writes it as Hugging Face tokenizer.json.
// Same merges as Hugging Face's BpeTrainer: most frequent pair first, ties to the lowest pair of
// ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/data/progress.hpp"
#include "tessera/data/text_corpus.hpp"

namespace tessera::data {

enum class Pattern { gpt2, llama3, qwen };

/// Pattern from its name; throws Error(usage) with the names.
Pattern pattern_from_name(const std::string& name);

struct TrainerOptions {
  /// with the 256 bytes and the special tokens; smaller when the text has no more pairs
  int vocab_size = 2048;
  Pattern pattern = Pattern::llama3;
  /// Last ids of the vocabulary. The first is BOS and the second EOS; a single one is EOS.
  std::vector<std::string> special_tokens;
};

/// Special tokens that go with a pattern when none are named.
std::vector<std::string> usual_special_tokens(Pattern pattern);

/// A trained vocabulary: token i of `tokens` has id i, in the byte-level alphabet; merges in order
/// of rank.
struct TrainedVocabulary {
  std::vector<std::string> tokens;
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;
};

/// O(text + merges * log pairs); memory is that of the distinct words. Throws Error(usage) for a
/// vocab_size below 256 plus the special tokens.
TrainedVocabulary train_vocabulary(const TextCorpus& corpus, const TrainerOptions& options,
                                   const Progress& progress = {});

/// Writes tokenizer.json and tokenizer_config.json into `folder` (made if missing), each aside and
/// then renamed. Throws Error(usage) if another tokenizer is there, unless `replace`.
void write_tokenizer(const std::filesystem::path& folder, const TrainedVocabulary& vocabulary,
                     const TrainerOptions& options, bool replace = true);

}  // namespace tessera::data
