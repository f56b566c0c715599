// SPDX-License-Identifier: Apache-2.0
// Documents out of text and JSONL; mistakes are named by file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/text_corpus.hpp"

namespace tessera::data {
namespace {

using tessera::test::content_of;
using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::vector<std::string> documents(const TextCorpus& corpus) {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < corpus.document_count(); ++i) texts.push_back(corpus.text(i));
  return texts;
}

TEST(TextCorpus, CutsPlainText) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.txt", "\none\ntwo\r\n\n \t\nthree\n\n\nfour");
  const auto cut = [&](DocumentRule rule) {
    return documents(TextCorpus({file}, {.documents = rule}));
  };
  EXPECT_THAT(cut(DocumentRule::file), ElementsAre(content_of(file)));
  EXPECT_THAT(cut(DocumentRule::lines), ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(cut(DocumentRule::paragraphs), ElementsAre("one\ntwo\r\n", "three\n", "four"));
  EXPECT_THAT(documents(TextCorpus({file}, {.split_regex = "^t"})),
              ElementsAre("\none\n", "two\r\n\n \t\n", "three\n\n\nfour"));
}

TEST(TextCorpus, JoinsWrappedChapters) {
  const TemporaryFolder folder;
  const auto file = folder.file(
      "kjv.txt",
      "\nGenesis 1\n\n  1 In the beginning God\ncreated the heaven.\n  2 And the earth 1\n\n"
      "1 Kings 22\n\n  1 And they\n\ncontinued\n\xff 1\n");
  EXPECT_THAT(
      documents(TextCorpus({file}, {.documents = DocumentRule::chapters})),
      ElementsAre("Genesis 1\n1 In the beginning God created the heaven.\n2 And the earth 1\n",
                  "1 Kings 22\n1 And they\ncontinued \xff 1\n"));
}

TEST(TextCorpus, ReadsJsonlAndFolders) {
  const TemporaryFolder folder;
  folder.file("b.jsonl", "{\"text\": \"two\"}\n\n{\"text\": \"a\\nb\", \"id\": 7}");
  folder.file("a.json", "{\"text\": \"one\"}\r\n");
  folder.file("c.bin", "not text");
  const TextCorpus corpus({folder.path()}, {});
  EXPECT_THAT(documents(corpus), ElementsAre("one", "two", "a\nb"));
}

TEST(TextCorpus, NamesFileAndLineOfMistakes) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& line) {
    const TextCorpus corpus({folder.file("x.jsonl", "{\"text\": \"fine\"}\n\n" + line + "\n")}, {});
    return error_of(ExitCode::data, [&] { corpus.text(1); });
  };
  for (const char* line :
       {"{", "7", "[]", "{\"body\": \"x\"}", "{\"text\": 7}", "{\"text\": \"\xff\"}"}) {
    EXPECT_THAT(refusal(line), HasSubstr("x.jsonl:3: ")) << line;
  }
  EXPECT_THAT(error_of(ExitCode::data, [&] { TextCorpus({folder / "none.txt"}, {}); }),
              HasSubstr("none.txt"));
  EXPECT_THAT(error_of(ExitCode::usage,
                       [&] { TextCorpus({folder.file("t.txt", "x")}, {.split_regex = "("}); }),
              HasSubstr("the pattern '('"));
}

TEST(TextCorpus, TakesWhatIsTextOfAFolder) {
  const TemporaryFolder folder;
  folder.file("b.TXT", "two");
  folder.file(".hidden.txt", "no");
  folder.file("c.xz", "no");
  std::filesystem::create_symlink(folder.file("a.txt", "one"), folder / "link.txt");
  const TextCorpus corpus({folder.path()}, {});
  ASSERT_EQ(corpus.document_count(), 3);
  EXPECT_EQ(corpus.text(0) + corpus.text(1) + corpus.text(2), "onetwoone");
  std::filesystem::create_symlink("gone.txt", folder / "d.txt");
  EXPECT_THAT(error_of(ExitCode::data, [&] { TextCorpus({folder.path()}, {}); }),
              HasSubstr("'d.txt' in the folder"));
}

TEST(TextCorpus, WindowsTextHasNoReturnsAndNoMark) {
  const TemporaryFolder folder;
  const TextCorpus corpus({folder.file("t.txt", "\xEF\xBB\xBFone\r\ntwo\r\n")},
                          {.documents = DocumentRule::lines});
  ASSERT_EQ(corpus.document_count(), 2);
  EXPECT_EQ(corpus.text(0), "one");
  EXPECT_EQ(corpus.text(1), "two");
}

TEST(TextCorpus, RefusesWhatIsNoText) {
  const TemporaryFolder folder;
  const std::string wide("o\0n\0e\0", 6);
  EXPECT_THAT(error_of(ExitCode::data, [&] { TextCorpus({folder.file("wide.txt", wide)}, {}); }),
              HasSubstr("wide.txt' is not plain text: its byte 1 is null"));
}

TEST(TextCorpus, DeepJsonIsNoDanger) {
  const TemporaryFolder folder;
  const TextCorpus corpus({folder.file("deep.jsonl", "{\"text\": " + std::string(1'000'000, '['))},
                          {});
  EXPECT_THAT(error_of(ExitCode::data, [&] { corpus.text(0); }), HasSubstr("deep.jsonl:1"));
}

TEST(TextCorpus, HashFollowsTextAndOptions) {
  const TemporaryFolder folder;
  const auto hash = [&](const std::string& text, CorpusOptions options) {
    return TextCorpus({folder.file("t.txt", text)}, options).content_hash();
  };
  const std::uint64_t first = hash("one text", {});
  EXPECT_EQ(hash("one text", {}), first);
  EXPECT_NE(hash("one texu", {}), first);
  EXPECT_NE(hash("one text", {.unwrap = true}), first);
}

}  // namespace
}  // namespace tessera::data
