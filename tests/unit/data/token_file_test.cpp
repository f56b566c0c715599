// SPDX-License-Identifier: Apache-2.0
// Token files: written, read, prepared from text, refused when damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <random>

#include "folder_turn.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/document_lengths.hpp"
#include "tessera/data/prepare.hpp"
#include "tessera/data/window_source.hpp"

namespace tessera::data {
namespace {

using tessera::test::content_of;
using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

const std::filesystem::path kGolden = TESSERA_TEST_DATA;

TokenFileInfo write_file(const std::filesystem::path& path, const std::vector<Ids>& documents,
                         std::int64_t vocab_size) {
  TokenFileInfo info;
  info.vocab_size = vocab_size;
  TokenFileWriter writer(path, info);
  for (const Ids& ids : documents) writer.append_document(ids);
  return writer.finish();
}

Ids read_all(const TokenFile& file) {
  Ids ids(static_cast<std::size_t>(file.info().token_count));
  file.read(0, ids);
  return ids;
}

TEST(TokenFile, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  for (const std::int64_t vocab_size : {65536, 200000}) {
    const auto last = static_cast<std::int32_t>(vocab_size - 1);
    write_file(folder / "x", {{1, 2, 3}, {}, {last}, {5, 6}}, vocab_size);
    const TokenFile file = TokenFile::open(folder / "x");
    EXPECT_TRUE(TokenFile::is_token_file(folder / "x"));
    EXPECT_EQ(file.info().token_bytes, vocab_size == 65536 ? 2 : 4);
    EXPECT_EQ(read_all(file), (Ids{1, 2, 3, last, 5, 6}));
    EXPECT_EQ(file.document(0), (Range{0, 3}));
    EXPECT_EQ(file.document(1), (Range{3, 0}));
    EXPECT_EQ(file.document(3), (Range{4, 2}));
    EXPECT_EQ(file.document_of(2), 0);
    EXPECT_EQ(file.document_of(3), 2);
    EXPECT_EQ(file.document_of(5), 3);
    file.verify();
    write_file(folder / "x", {{}, {last}, {}, {}}, vocab_size);
    EXPECT_EQ(TokenFile::open(folder / "x").document(1), (Range{0, 1}));
  }
}

TEST(TokenFile, TellsHowLongItsDocumentsAre) {
  const TemporaryFolder folder;
  std::vector<Ids> documents;
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>
      expected;  // by the least length of a class
  for (std::int64_t length = 0; length < 70; ++length) {
    documents.emplace_back(static_cast<std::size_t>(length), 1);
    std::int64_t least = 0;
    while (least < length && (least == 0 ? 1 : 2 * least) <= length)
      least = least == 0 ? 1 : 2 * least;
    ++expected[least].first;
    expected[least].second += length;
  }
  std::shuffle(documents.begin(), documents.end(), std::mt19937(1));
  write_file(folder / "x", documents, 10);
  const auto classes = document_lengths(TokenFile::open(folder / "x"));
  ASSERT_EQ(classes.size(), expected.size());
  std::size_t i = 0;
  for (const auto& [least, counts] : expected) {
    EXPECT_EQ(classes[i].least, least);
    EXPECT_EQ(classes[i].most, least < 2 ? least : 2 * least - 1);
    EXPECT_EQ(std::pair(classes[i].documents, classes[i].tokens), counts);
    ++i;
  }
}

TEST(WindowSource, ReadsPositionsOfTheSequenceAlone) {
  const TemporaryFolder folder;
  write_file(folder / "x", {Ids(100, 1)}, 10);
  const TokenFile file = TokenFile::open(folder / "x");
  const WindowSource source({{file, {0, 100}}}, 32, 1);
  Ids ids(8);
  source.read_part(0, {24, 8}, ids, {});
  EXPECT_THROW(source.read_part(0, {30, 8}, ids, {}), ContractViolation);
  EXPECT_THROW(source.read_part(0, {0, 4}, ids, {}), ContractViolation);
  EXPECT_THROW(hold_out({}, 32, 0.5), ContractViolation);
}

TEST(TokenFile, NothingIsLeftOfAnUnfinishedOne) {
  const TemporaryFolder folder;
  {
    TokenFileInfo info;
    info.vocab_size = 10;
    TokenFileWriter writer(folder / "x", info);
    writer.append_document(Ids{1});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT(error_of(ExitCode::environment, [] { write_file("/proc/none/x", {}, 10); }),
              HasSubstr("'/proc/none'"));
  EXPECT_THAT(error_of(ExitCode::environment, [] { write_file("/dev/full/x", {}, 10); }),
              HasSubstr("'/dev/full'"));
}

/// As jobs on two machines may.
TEST(TokenFile, TwoWritersOfOneFileDoNotMeet) {
  const TemporaryFolder folder;
  TokenFileInfo info;
  info.vocab_size = 10;
  TokenFileWriter first(folder / "x", info), second(folder / "x", info);
  first.append_document(Ids{1, 2, 3});
  second.append_document(Ids{4});
  first.finish();
  EXPECT_EQ(read_all(TokenFile::open(folder / "x")), (Ids{1, 2, 3}));
  second.finish();
  EXPECT_EQ(read_all(TokenFile::open(folder / "x")), Ids{4});
}

TEST(TokenFile, DamageIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "x", {{1, 2, 3}, {4, 5, 6, 7}}, 100);
  const std::string whole = content_of(folder / "x");
  const auto refusal = [&](const std::string& bytes) {
    const auto path = folder.file("y", bytes);
    return error_of(ExitCode::data, [&] { TokenFile::open(path).verify(); });
  };
  for (std::size_t size = 0; size < whole.size(); ++size) refusal(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x41);
    refusal(broken);
  }
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 1)), HasSubstr("truncated"));
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("grown"));
  EXPECT_THAT(refusal("plain text"), HasSubstr("not a token file"));
  EXPECT_FALSE(TokenFile::is_token_file(folder.file("z", "TSR")));
  EXPECT_FALSE(TokenFile::is_token_file(folder.path()));
}

TEST(TokenFile, IdsOutsideOfTheVocabularyAreRefused) {
  const TemporaryFolder folder;
  write_file(folder / "x", {{1, 2, 3}}, 100);
  std::string bytes = content_of(folder / "x");
  bytes[128] = 100;
  const TokenFile file = TokenFile::open(folder.file("x", bytes));
  EXPECT_THAT(error_of(ExitCode::data, [&] { read_all(file); }), HasSubstr("id 100"));
}

class Prepared : public testing::Test {
 protected:
  TemporaryFolder folder_;
  Tokenizer tokenizer_ = Tokenizer::load(kGolden / "hf_tiny");
  std::filesystem::path text_ = folder_.file("text.txt", [] {
    std::string lines;
    for (int i = 0; i < 300; ++i) lines += "line number " + std::to_string(i) + "\n";
    return lines;
  }());
  PrepareOptions lines_{.corpus = {.documents = DocumentRule::lines}, .seed = 3, .threads = 2};

  TokenFile prepare_with(const PrepareOptions& options) {
    prepare(TextCorpus({text_}, options.corpus), tokenizer_, folder_ / "out", options);
    return TokenFile::open(folder_ / "out");
  }
  std::vector<std::string> documents(const TokenFile& file) {
    const Ids ids = read_all(file);
    std::vector<std::string> texts;
    for (std::int64_t d = 0; d < file.info().document_count; ++d) {
      const Range range = file.document(d);
      EXPECT_EQ(ids[range.begin], tokenizer_.bos_id());
      EXPECT_EQ(ids[range.end() - 1], tokenizer_.eos_id());
      texts.push_back(tokenizer_.decode(std::span(ids).subspan(range.begin + 1, range.size - 2)));
    }
    return texts;
  }
};

TEST_F(Prepared, HoldsEveryDocumentOnceInAnOrderOfTheSeed) {
  const auto first = documents(prepare_with(lines_));
  EXPECT_EQ(documents(prepare_with(lines_)), first);
  PrepareOptions other = lines_;
  other.threads = 5;
  EXPECT_EQ(documents(prepare_with(other)), first);
  other.seed = 4;
  auto second = documents(prepare_with(other));
  EXPECT_NE(second, first);
  EXPECT_THAT(second, testing::UnorderedElementsAreArray(first));
  EXPECT_EQ(first.size(), 300u);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST_F(Prepared, IsFoundAgain) {
  const auto cache = folder_ / "cache";
  const auto made = prepare_if_needed({text_}, tokenizer_, cache, lines_);
  const auto time = std::filesystem::last_write_time(made);
  EXPECT_EQ(prepare_if_needed({text_}, tokenizer_, cache, lines_), made);
  EXPECT_EQ(std::filesystem::last_write_time(made), time);
  folder_.file("text.txt", "another text\n");
  EXPECT_NE(prepare_if_needed({text_}, tokenizer_, cache, lines_), made);
  const Tokenizer other = Tokenizer::load(kGolden / "gpt2_small");
  EXPECT_NE(prepare_if_needed({text_}, other, cache, lines_), made);
}

/// tokenizer_config.json names the ids around documents, and no hash of tokenizer.json knows it.
TEST_F(Prepared, IsNotFoundForOtherIdsAroundDocuments) {
  const auto load = [&](const std::string& eos) {
    folder_.file("tokenizer/tokenizer.json", content_of(kGolden / "hf_tiny/tokenizer.json"));
    folder_.file("tokenizer/tokenizer_config.json", "{\"eos_token\": \"" + eos + "\"}");
    return Tokenizer::load(folder_ / "tokenizer");
  };
  const Tokenizer one = load("<|end_of_text|>"), other = load("<|begin_of_text|>");
  ASSERT_EQ(one.content_hash(), other.content_hash());
  ASSERT_NE(one.eos_id(), other.eos_id());
  const auto made = prepare_if_needed({text_}, one, folder_ / "cache", lines_),
             again = prepare_if_needed({text_}, other, folder_ / "cache", lines_);
  EXPECT_NE(again, made);
  EXPECT_EQ(TokenFile::open(again).info().eos_id, other.eos_id());
}

/// Whoever comes while another process makes the file waits for it, and does not make it again.
TEST_F(Prepared, IsMadeByOneProcessAtATime) {
  const auto made = prepare_if_needed({text_}, tokenizer_, folder_ / "cache", lines_),
             shared = folder_ / "shared";
  const auto file = shared / made.filename();
  const auto long_ago = std::filesystem::last_write_time(made) - std::chrono::hours(1);
  std::future<std::filesystem::path> second;
  {
    const FolderTurn first(shared);
    second = std::async(std::launch::async,
                        [&] { return prepare_if_needed({text_}, tokenizer_, shared, lines_); });
    EXPECT_EQ(second.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
    EXPECT_TRUE(std::filesystem::is_empty(shared));
    std::filesystem::copy_file(made, file);
    std::filesystem::last_write_time(file, long_ago);
  }
  EXPECT_EQ(second.get(), file);
  EXPECT_EQ(std::filesystem::last_write_time(file), long_ago);
}

TEST_F(Prepared, HasANameThatAFileSystemTakes) {
  const auto text = folder_.file(std::string(240, 'x') + ".txt", "a text\n");
  const auto made = prepare_if_needed({text}, tokenizer_, folder_ / "cache", lines_);
  EXPECT_EQ(made.filename().string().find_first_not_of('x'), 128u);
}

TEST_F(Prepared, IsMadeAgainWhenDamaged) {
  const auto made = prepare_if_needed({text_}, tokenizer_, folder_ / "cache", lines_);
  const std::string whole = content_of(made);
  std::ofstream(made, std::ios::binary) << whole.substr(0, whole.size() / 2);
  EXPECT_EQ(prepare_if_needed({text_}, tokenizer_, folder_ / "cache", lines_), made);
  EXPECT_EQ(content_of(made), whole);
}

TEST_F(Prepared, MistakesOfWorkersComeThrough) {
  folder_.file("bad.jsonl", "{\"text\": \"fine\"}\n{\"txt\": 1}\n");
  const TextCorpus corpus({folder_ / "bad.jsonl"}, {});
  EXPECT_THAT(
      error_of(ExitCode::data, [&] { prepare(corpus, tokenizer_, folder_ / "out", lines_); }),
      HasSubstr("bad.jsonl:2"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  const TextCorpus empty({folder_.file("empty.txt", " \n")}, {});
  EXPECT_THAT(
      error_of(ExitCode::data, [&] { prepare(empty, tokenizer_, folder_ / "out", lines_); }),
      HasSubstr("no text"));
}

}  // namespace
}  // namespace tessera::data
