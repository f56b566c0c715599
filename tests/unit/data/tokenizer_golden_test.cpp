// SPDX-License-Identifier: Apache-2.0
// Ids and pre-tokens against Hugging Face's tokenizers (tests/golden/make_tokenizer_cases.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/data/tokenizer.hpp"

namespace tessera::data {
namespace {

const std::filesystem::path kTokenizers = TESSERA_TEST_DATA;

nlohmann::json rows_of(const std::string& name) {
  std::ifstream in(kTokenizers / name / "tokenizer_cases.json");
  return nlohmann::json::parse(in).at("rows");
}

class GoldenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, GivesTheSameIds) {
  const Tokenizer tokenizer = Tokenizer::load(kTokenizers / GetParam());
  const nlohmann::json rows = rows_of(GetParam());
  ASSERT_GE(rows.size(), 100u);
  for (const auto& row : rows) {
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), row.at("ids").get<std::vector<std::int32_t>>())
        << row.at("text").dump();
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizer,
                         testing::Values("hf_tiny", "gpt2_small", "qwen_small", "odd_small"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HfTiny, DecodesBackAndCutsTheSameWords) {
  const Tokenizer tokenizer = Tokenizer::load(kTokenizers / "hf_tiny" / "tokenizer.json");
  int with_words = 0;
  for (const auto& row : rows_of("hf_tiny")) {
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.decode(row.at("ids").get<std::vector<std::int32_t>>()), text);
    if (row.at("pre").is_null()) continue;
    EXPECT_EQ(tokenizer.pre_tokens(text), row.at("pre").get<std::vector<std::string>>());
    ++with_words;
  }
  EXPECT_GT(with_words, 50);
}

TEST(HfTiny, KnowsItsSpecialTokens) {
  const Tokenizer tokenizer = Tokenizer::load(kTokenizers / "hf_tiny");
  EXPECT_EQ(tokenizer.vocab_size(), 1000);
  EXPECT_EQ(tokenizer.bos_id(), 998);
  EXPECT_EQ(tokenizer.eos_id(), 999);
  EXPECT_EQ(tokenizer.id_of("<|end_of_text|>"), 999);
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{998, 87, 999}, true), "x");
}

}  // namespace
}  // namespace tessera::data
