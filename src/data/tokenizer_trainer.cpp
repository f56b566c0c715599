// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/tokenizer_trainer.hpp"

#include <algorithm>
#include <set>

#include "bpe.hpp"
#include "byte_alphabet.hpp"
#include "merge_trainer.hpp"
#include "nfc.hpp"
#include "pre_tokenizer.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/utf8.hpp"
#include "tokenizer_layout.hpp"

namespace tessera::data {
namespace {

using WordCounts = StringMap<std::int64_t>;

void check_options(const TrainerOptions& options) {
  constexpr int kMost = 1 << 24;
  const auto special = options.special_tokens.size();
  require(options.vocab_size >= static_cast<int>(256 + special) && options.vocab_size <= kMost,
          ExitCode::usage,
          "a vocabulary of {} cannot be trained; --vocab-size goes from {} (256 bytes, {} special "
          "tokens) to {}",
          options.vocab_size, 256 + special, special, kMost);
  const std::set<std::string> distinct(options.special_tokens.begin(),
                                       options.special_tokens.end());
  require(distinct.size() == special && !distinct.contains(""), ExitCode::usage,
          "special tokens must be distinct and not empty; correct --special");
  for (const std::string& token : distinct) {
    require(valid_utf8_prefix(token) == token.size(), ExitCode::usage,
            "a special token is not valid UTF-8; correct --special");
  }
}

/// Words of text, counted as the pattern cuts them.
class WordCounter {
 public:
  explicit WordCounter(Pattern pattern)
      : layout_(nlohmann::json(pre_tokenizer_layout(pattern))),
        pre_tokenizer_(PreTokenizer::from_json(JsonNode(layout_, {"pattern", ExitCode::usage}))),
        nfc_(normalizes(pattern)) {}

  void add(std::string_view text) {
    while (!text.empty()) {
      const std::size_t valid = valid_utf8_prefix(text);
      add_utf8(text.substr(0, valid));
      // a byte outside UTF-8 is a word without pairs
      text.remove_prefix(std::min(valid + 1, text.size()));
    }
  }

  const WordCounts& counts() const { return counts_; }

 private:
  void add_utf8(std::string_view text) {
    if (text.empty()) return;
    const auto count = [this](std::string_view word) {
      const auto found = counts_.find(word);
      found == counts_.end() ? void(counts_.emplace(word, 1)) : void(++found->second);
    };
    nfc_ ? pre_tokenizer_.split(to_nfc(text), count) : pre_tokenizer_.split(text, count);
  }

  nlohmann::json layout_;
  PreTokenizer pre_tokenizer_;
  bool nfc_;
  WordCounts counts_;
};

WordCounts count_words(const TextCorpus& corpus, Pattern pattern, const Progress& progress) {
  WordCounter counter(pattern);
  const auto total = static_cast<std::uint64_t>(corpus.total_bytes());
  std::uint64_t done = 0;
  for (std::int64_t document = 0; document < corpus.document_count(); ++document) {
    counter.add(corpus.text(document));
    done += static_cast<std::uint64_t>(corpus.document_bytes(document));
    if (progress) progress(done, total);
  }
  return counter.counts();
}

MergeTrainer words_to_merge(const WordCounts& counts) {
  std::array<std::int32_t, 256> id_of_byte{};
  for (std::int32_t id = 0; id < 256; ++id) id_of_byte[bytes_by_character()[id]] = id;
  MergeTrainer trainer;
  for (const auto& [word, occurrences] : counts) {
    std::vector<std::int32_t> ids;
    for (const char byte : word) ids.push_back(id_of_byte[static_cast<std::uint8_t>(byte)]);
    trainer.add_word(std::move(ids), occurrences);
  }
  trainer.count_pairs();
  return trainer;
}

TrainedVocabulary learn_merges(MergeTrainer trainer, std::size_t size) {
  TrainedVocabulary made;
  StringMap<std::int32_t> ids;
  for (const std::uint8_t byte : bytes_by_character()) made.tokens.push_back(byte_alphabet()[byte]);
  for (const std::string& token : made.tokens)
    ids.emplace(token, static_cast<std::int32_t>(ids.size()));
  while (made.tokens.size() < size) {
    const auto [pair, count] = trainer.best_pair();
    if (count == 0) break;
    const std::string token = made.tokens[pair.first] + made.tokens[pair.second];
    const auto [entry, is_new] = ids.emplace(token, static_cast<std::int32_t>(made.tokens.size()));
    if (is_new) made.tokens.push_back(token);
    made.merges.push_back(pair);
    trainer.merge(pair, entry->second);
  }
  return made;
}

}  // namespace

TrainedVocabulary train_vocabulary(const TextCorpus& corpus, const TrainerOptions& options,
                                   const Progress& progress) {
  check_options(options);
  require(corpus.document_count() > 0, ExitCode::data,
          "there is no text to train on; name files with text");
  const auto size = static_cast<std::size_t>(options.vocab_size) - options.special_tokens.size();
  return learn_merges(words_to_merge(count_words(corpus, options.pattern, progress)), size);
}

}  // namespace tessera::data
