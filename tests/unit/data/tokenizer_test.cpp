// SPDX-License-Identifier: Apache-2.0
// Bytes survive, damaged files are refused, the heap of merges agrees with the plain loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "bpe.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/tokenizer.hpp"

namespace tessera::data {
namespace {

using nlohmann::json;
using tessera::test::content_of;
using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kTestData = TESSERA_TEST_DATA;
constexpr const char* kAll[] = {"hf_tiny", "gpt2_small", "qwen_small"};

std::string random_bytes(std::mt19937& rng, std::size_t most) {
  std::string text(rng() % most, '\0');
  for (char& byte : text)
    byte = static_cast<char>(rng() % 3 == 0 ? rng() : "<|x' \n\xc3\xa9"[rng() % 9]);
  return text;
}

TEST(Tokenizer, AnyBytesSurvive) {
  std::mt19937 rng(3);
  for (const char* name : kAll) {
    const Tokenizer tokenizer = Tokenizer::load(kTestData / name);
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_bytes(rng, 200);
      const bool normalises = name == std::string("qwen_small");
      EXPECT_TRUE(normalises || tokenizer.decode(tokenizer.encode(text)) == text) << text;
      for (const std::int32_t id : tokenizer.encode(text))
        ASSERT_TRUE(id >= 0 && id < tokenizer.vocab_size());
    }
  }
}

TEST(Tokenizer, LongRunsCostNeitherTimeNorStack) {
  const Tokenizer tokenizer = Tokenizer::load(kTestData / "hf_tiny");
  for (const char* unit : {" ", "a", "\n", "1", "'", "\xff", "\xe4\xb8\xad", " x", "\t"}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, ThreadsShareIt) {
  const Tokenizer tokenizer = Tokenizer::load(kTestData / "gpt2_small");
  const std::string text = "In the beginning God created the heaven and the earth.";
  const auto expected = tokenizer.encode(text);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) EXPECT_EQ(tokenizer.encode(text), expected);
    });
  }
}

TEST(Tokenizer, RefusesIdsOutsideOfItsVocabulary) {
  const Tokenizer tokenizer = Tokenizer::load(kTestData / "hf_tiny");
  for (const std::int32_t id : {-1, 1000, 1 << 30}) {
    EXPECT_THAT(error_of(ExitCode::data, [&] { tokenizer.decode(std::vector{id}); }),
                HasSubstr("vocabulary of 1000"));
  }
}

/// Slow twin of BpeModel: looks for the lowest rank again after each merge.
std::vector<std::int32_t> merge_slowly(
    const std::map<std::pair<int, int>, std::pair<int, int>>& merges,
    std::vector<std::int32_t> ids) {
  while (true) {
    int best = -1, rank = std::numeric_limits<int>::max();
    for (int i = 0; i + 1 < static_cast<int>(ids.size()); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found != merges.end() && found->second.first < rank) rank = found->second.first, best = i;
    }
    if (best < 0) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + best + 1);
  }
}

TEST(Bpe, AgreesWithThePlainLoop) {
  std::mt19937 rng(5);
  for (int round = 0; round < 300; ++round) {
    BpeModel model;
    for (int byte = 0; byte < 256; ++byte)
      model.set_byte(static_cast<std::uint8_t>(byte), byte % 3);
    std::map<std::pair<int, int>, std::pair<int, int>> merges;
    for (int rank = 0; rank < 20; ++rank) {
      const int left = static_cast<int>(rng() % (3 + rank)),
                right = static_cast<int>(rng() % (3 + rank));
      if (merges.contains({left, right})) continue;
      merges[{left, right}] = {rank, 3 + rank};
      model.set_merge(left, right, static_cast<std::uint32_t>(rank), 3 + rank);
    }
    std::string word(rng() % 40, '\0');
    std::vector<std::int32_t> ids, plain;
    for (char& byte : word) plain.push_back(byte = static_cast<char>(rng() % 3));
    model.encode(word, ids);
    EXPECT_EQ(ids, merge_slowly(merges, plain));
  }
}

class DamagedTokenizer : public testing::Test {
 protected:
  DamagedTokenizer()
      : document_(json::parse(content_of(kTestData / "gpt2_small" / "tokenizer.json"))) {}
  /// Message of loading the document as it now is.
  std::string refusal() { return refusal_of(document_.dump()); }
  std::string refusal_of(const std::string& text) {
    const auto path = folder_.file("tokenizer.json", text);
    return error_of(ExitCode::data, [&] { Tokenizer::load(path); });
  }
  TemporaryFolder folder_;
  json document_;
};

TEST_F(DamagedTokenizer, IsNamedWithTheMistake) {
  EXPECT_THAT(error_of(ExitCode::data, [] { Tokenizer::load("/no/such/folder"); }),
              HasSubstr("/no/such/folder"));
  EXPECT_THAT(error_of(ExitCode::data, [&] { Tokenizer::load(folder_.path()); }),
              HasSubstr("tokenizer.json"));
  EXPECT_THAT(refusal_of(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal_of("{\"model\": "), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("is not a tokenizer.json"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("is not a tokenizer.json (it has no \"model\")"));
  EXPECT_THAT(refusal_of(std::string(1'000'000, '[')), HasSubstr("nested too deeply"));
  document_["model"]["type"] = "Unigram";
  EXPECT_THAT(refusal(), HasSubstr("'Unigram' is not supported"));
}

TEST_F(DamagedTokenizer, IdsAreChecked) {
  for (const json& id :
       {json(-1), json(1e30), json("7"), json(1.5), json(std::int64_t{1} << 40), json(0)}) {
    document_["model"]["vocab"]["new token"] = id;
    EXPECT_THAT(refusal(), HasSubstr("tokenizer.json, model.vocab")) << id;
  }
}

TEST_F(DamagedTokenizer, MergesAreChecked) {
  for (const json& merge : {json("a"), json("a b c"), json(7), json::array({"a"}), json("a qqq"),
                            json::array({"a", 7})}) {
    document_["model"]["merges"][3] = merge;
    EXPECT_THAT(refusal(), HasSubstr("model.merges[3]")) << merge;
  }
}

TEST_F(DamagedTokenizer, WhatIsNotByteLevelIsRefused) {
  const json whole = document_;
  const auto with = [&](const char* pointer, const json& value) {
    document_ = whole;
    document_[json::json_pointer(pointer)] = value;
    return refusal();
  };
  EXPECT_THAT(with("/model/byte_fallback", true), HasSubstr("byte_fallback"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("model.dropout"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(with("/normalizer", {{"type", "Lowercase"}}), HasSubstr("'Lowercase'"));
  EXPECT_THAT(with("/pre_tokenizer", nullptr), HasSubstr("byte-level"));
  EXPECT_THAT(with("/pre_tokenizer/type", "Metaspace"), HasSubstr("'Metaspace'"));
  EXPECT_THAT(with("/decoder/type", "WordPiece"), HasSubstr("'WordPiece'"));
  EXPECT_THAT(with("/added_tokens/0/id", 3), HasSubstr("added_tokens[0]"));
  EXPECT_THAT(with("/added_tokens/0/content", 3), HasSubstr("added_tokens[0].content"));
}

TEST_F(DamagedTokenizer, PatternsAreChecked) {
  for (const char* pattern : {"(", "[a&&b]", "\\h", "[[a]b]", "[^\\S]", "a{9999999999}"}) {
    document_["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}},
          {{"type", "ByteLevel"}, {"use_regex", false}}}}};
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("tokenizer.json"), HasSubstr("pattern.Regex: the pattern")))
        << pattern;
  }
}

TEST_F(DamagedTokenizer, ExplodingPatternsGiveUp) {
  document_["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "(?:a|aa)+[^a]"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"use_regex", false}}}}};
  const Tokenizer tokenizer = Tokenizer::load(folder_.file("tokenizer.json", document_.dump()));
  EXPECT_THAT(error_of(ExitCode::data, [&] { tokenizer.encode(std::string(60, 'a')); }),
              HasSubstr("exceeds its limits"));
}

TEST_F(DamagedTokenizer, AnyChangedByteIsReadOrRefused) {
  const std::string text = content_of(kTestData / "odd_small" / "tokenizer.json");
  std::mt19937 rng(11);
  for (int i = 0; i < 150; ++i) {
    std::string broken = text;
    for (int n = 0; n < 3; ++n) broken[rng() % broken.size()] = "{}[]\",:0a9\\\xff"[rng() % 12];
    try {
      Tokenizer::load(folder_.file("tokenizer.json", broken)).encode("Any text at all, 123.");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << error.what();
    }
  }
}

TEST(SpecialIds, ComeFromConfigurationTemplateOrUsualNames) {
  const TemporaryFolder folder;
  folder.file("tokenizer.json", content_of(kTestData / "qwen_small" / "tokenizer.json"));
  EXPECT_EQ(Tokenizer::load(folder.path()).bos_id(), std::nullopt);
  EXPECT_EQ(Tokenizer::load(folder.path()).eos_id(), 625);
  folder.file("tokenizer_config.json",
              R"({"bos_token": {"content": "<|im_start|>"}, "eos_token": "<|im_end|>"})");
  EXPECT_EQ(Tokenizer::load(folder.path()).bos_id(), 626);
  EXPECT_EQ(Tokenizer::load(folder.path()).eos_id(), 627);
  folder.file("tokenizer_config.json",
              R"({"bos_token": {"content": "<|typo|>"}, "eos_token": "<|end|>"})");
  testing::internal::CaptureStderr();
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("tokenizer_config.json, bos_token: \"<|typo|>\" is not in "
                              "tokenizer.json and is ignored"),
                    HasSubstr("eos_token: \"<|end|>\" is not in tokenizer.json")));
  EXPECT_EQ(tokenizer.bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer.eos_id(), 625);
  folder.file("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(Tokenizer::load(folder.path()).eos_id(), std::nullopt);
  folder.file("tokenizer_config.json", R"({"eos_token": 7})");
  EXPECT_THAT(error_of(ExitCode::data, [&] { Tokenizer::load(folder.path()); }),
              HasSubstr("eos_token"));
}

}  // namespace
}  // namespace tessera::data
