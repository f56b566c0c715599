// SPDX-License-Identifier: Apache-2.0
// Training: the incremental counts agree with counting again, and what is written loads with the
// same ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "merge_trainer.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/data/tokenizer_trainer.hpp"

namespace tessera::data {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using Pair = MergeTrainer::Pair;

struct PlainWords {
  std::vector<std::pair<std::vector<std::int32_t>, std::int64_t>> words;

  std::pair<Pair, std::int64_t> best_pair() const {
    std::map<Pair, std::int64_t> counts;
    for (const auto& [ids, n] : words) {
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) counts[{ids[i], ids[i + 1]}] += n;
    }
    std::pair<Pair, std::int64_t> best{{}, 0};
    for (const auto& [pair, count] : counts) {
      if (count > best.second) best = {pair, count};
    }
    return best;
  }
  void merge(Pair pair, std::int32_t merged) {
    for (auto& [ids, n] : words) {
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        if (Pair{ids[i], ids[i + 1]} != pair) continue;
        ids[i] = merged;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
};

TEST(MergeTrainer, AgreesWithCountingAgain) {
  std::mt19937 rng(2);
  for (int round = 0; round < 30; ++round) {
    MergeTrainer fast;
    PlainWords plain;
    for (int w = 0; w < 40; ++w) {
      std::vector<std::int32_t> ids(1 + rng() % 12);
      for (auto& id : ids) id = static_cast<std::int32_t>(rng() % 4);
      const std::int64_t occurrences = 1 + static_cast<std::int64_t>(rng() % 5);
      plain.words.push_back({ids, occurrences});
      fast.add_word(ids, occurrences);
    }
    fast.count_pairs();
    for (std::int32_t merged = 4; merged < 60; ++merged) {
      const auto expected = plain.best_pair();
      ASSERT_EQ(fast.best_pair(), expected);
      if (expected.second == 0) break;
      plain.merge(expected.first, merged);
      fast.merge(expected.first, merged);
    }
  }
}

class Trainer : public testing::Test {
 protected:
  TextCorpus corpus() const { return TextCorpus({text_}, {}); }
  TemporaryFolder folder_;
  std::string sentence_ =
      "the heaven and the earth, the 12345 caf\u00e9s: don't! <|end_of_text|>\n";
  std::filesystem::path text_ = folder_.file("text.txt", [this] {
    std::string text;
    for (int i = 0; i < 50; ++i) text += sentence_;
    return text;
  }());
};

TEST_F(Trainer, WritesWhatLoadsAndComesBack) {
  for (const char* name : {"gpt2", "llama3", "qwen"}) {
    TrainerOptions options;
    options.vocab_size = 280;
    options.pattern = pattern_from_name(name);
    options.special_tokens = usual_special_tokens(options.pattern);
    const TrainedVocabulary vocabulary = train_vocabulary(corpus(), options);
    write_tokenizer(folder_ / name, vocabulary, options);
    const Tokenizer tokenizer = Tokenizer::load(folder_ / name);
    EXPECT_EQ(tokenizer.vocab_size(), 280);
    EXPECT_EQ(tokenizer.eos_id(), 279);
    EXPECT_EQ(tokenizer.bos_id(),
              name == std::string("llama3") ? std::optional<int>(278) : std::nullopt);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(sentence_)), sentence_);
    EXPECT_EQ(tokenizer.encode("\u0120 the").size(), 3u);
    EXPECT_LT(tokenizer.encode(sentence_).size(), sentence_.size() * 2 / 3);
    EXPECT_EQ(tokenizer.encode("!"), std::vector<std::int32_t>{0});
  }
}

TEST_F(Trainer, StopsWhenNoPairIsLeft) {
  TrainerOptions options;
  options.vocab_size = 5000;
  EXPECT_LT(train_vocabulary(corpus(), options).tokens.size(), 400u);
}

TEST_F(Trainer, RefusesWhatCannotBe) {
  TrainerOptions options;
  const auto refusal = [&] {
    return error_of(ExitCode::usage, [&] { train_vocabulary(corpus(), options); });
  };
  options.vocab_size = 255;
  EXPECT_THAT(refusal(), HasSubstr("vocabulary of 255"));
  options.vocab_size = 300;
  options.special_tokens = {"<a>", "<a>"};
  EXPECT_THAT(refusal(), HasSubstr("distinct"));
  options.special_tokens = {"\xff"};
  EXPECT_THAT(refusal(), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(ExitCode::usage, [] { pattern_from_name("bert"); }), HasSubstr("'bert'"));
}

}  // namespace
}  // namespace tessera::data
