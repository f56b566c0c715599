// SPDX-License-Identifier: Apache-2.0
// Files that must not hang or exhaust the program: found by fuzzing, or bounded before it could.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "regex.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/data/text_corpus.hpp"
#include "tessera/data/token_file.hpp"
#include "tessera/data/tokenizer.hpp"

namespace tessera::data {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

TEST(HostileFiles, ANamedPipeIsNoFile) {
  const TemporaryFolder folder;
  for (const char* name : {"tokenizer.json", "text.txt", "tokens"})
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
  EXPECT_THAT(error_of(ExitCode::data, [&] { Tokenizer::load(folder / "tokenizer.json"); }),
              HasSubstr("tokenizer.json"));
  EXPECT_THAT(error_of(ExitCode::data, [&] { TextCorpus({folder / "text.txt"}, {}); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(error_of(ExitCode::data, [&] { TokenFile::open(folder / "tokens"); }),
              HasSubstr("not a regular file"));
  EXPECT_FALSE(TokenFile::is_token_file(folder / "tokens"));
}

TEST(HostileFiles, WhatIsTooLargeForItsKindIsNotRead) {
  const TemporaryFolder folder;
  const auto file = folder.file("tokenizer.json", "{}");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);  // a hole
  EXPECT_THAT(error_of(ExitCode::data, [&] { Tokenizer::load(file); }),
              HasSubstr("1099511627776 bytes"));
}

TEST(HostileFiles, MessagesQuoteAFewWordsOnly) {
  const std::string word(1 << 20, 'x');
  EXPECT_LT(error_of(ExitCode::data,
                     [&] {
                       parse_json("[\"" + word, {"file", ExitCode::data});
                     })
                .size(),
            1000u);
  const TemporaryFolder folder;
  const auto file =
      folder.file("tokenizer.json", R"({"model": {"vocab": {")" + word + R"(": -1}, "merges": []},
                                "pre_tokenizer": {"type": "ByteLevel"}})");
  EXPECT_LT(error_of(ExitCode::data, [&] { Tokenizer::load(file); }).size(), 1500u);
}

/// Pieces of `text`, of which there can be no more than characters.
std::size_t pieces(const std::string& pattern, const std::string& text) {
  std::size_t count = 0;
  std::string together;
  Regex::compile(pattern).for_each_piece(text, [&](std::string_view piece, bool) {
    together += piece;
    ASSERT_LE(++count, text.size());
  });
  EXPECT_EQ(together, text) << pattern;
  return count;
}

TEST(HostileFiles, MatchesThatMoveTheirBeginningEnd) {
  EXPECT_EQ(pieces(R"(a\Kb)", "abab"), 4u);
  for (const char* pattern : {R"((?(DEFINE)(?<k>\K))(?<=(?&k)a))",
                              R"((?(DEFINE)(?<k>a\K))(?=(?&k)).)", R"(\K)", R"(a*\K)"}) {
    try {
      pieces(pattern, "aabaa");
    } catch (const Error& refused) {
      EXPECT_EQ(refused.code(), ExitCode::data);
    }
  }
}

TEST(HostileFiles, PatternsHaveABound) {
  EXPECT_THAT(error_of(ExitCode::data, [] { Regex::compile(std::string(1 << 20, 'a')); }),
              HasSubstr("too long"));
  EXPECT_THAT(error_of(ExitCode::data,
                       [] { Regex::compile(std::string(8000, '(') + std::string(8000, ')')); }),
              HasSubstr("not a regular expression"));
}

}  // namespace
}  // namespace tessera::data
