// SPDX-License-Identifier: Apache-2.0
// Compressed text: the same documents as plain, and one clear refusal for what is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/data_files.hpp"
#include "tessera/data/text_corpus.hpp"
#include "unpack.hpp"

namespace tessera::data {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::vector<std::string> documents(const std::filesystem::path& path) {
  const TextCorpus corpus({path}, {});
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < corpus.document_count(); ++i) texts.push_back(corpus.text(i));
  return texts;
}

/// Some lines of JSONL, more of them than one portion of output holds.
std::string many_lines() {
  std::string text;
  for (int i = 0; i < 60000; ++i)
    text += fmt::format("{{\"text\": \"line {} of many\"}}\n", i * 7919);
  return text;
}

TEST(Unpack, CompressedTextIsTheSameText) {
  const TemporaryFolder folder;
  const std::string lines = many_lines();
  const auto hash = [](const std::filesystem::path& path) {
    return TextCorpus({path}, {}).content_hash();
  };
  const std::uint64_t plain = hash(folder.file("a.jsonl", lines));
  EXPECT_EQ(hash(folder.file("a.jsonl.gz", gzip(lines))), plain);
  EXPECT_EQ(hash(folder.file("b.json.zst", zstd(lines))), plain);
  EXPECT_EQ(hash(folder.file("misnamed.jsonl", gzip(lines))), plain);
  EXPECT_THAT(documents(folder.file("c.txt.gz", gzip("one document"))),
              ElementsAre("one document"));
}

TEST(Unpack, ReadsEveryMemberAndFrame) {
  const TemporaryFolder folder;
  const std::string one = "{\"text\": \"one\"}\n", two = "{\"text\": \"two\"}\n",
                    skipped{"\x50\x2a\x4d\x18\x02\0\0\0xy", 10};
  EXPECT_THAT(documents(folder.file("a.jsonl.gz", gzip(one) + gzip("") + gzip(two))),
              ElementsAre("one", "two"));
  EXPECT_THAT(documents(folder.file("padded.jsonl.gz", gzip(one) + std::string(512, '\0'))),
              ElementsAre("one"));
  EXPECT_THAT(documents(folder.file("a.jsonl.zst", skipped + zstd(one) + zstd(two))),
              ElementsAre("one", "two"));
}

TEST(Unpack, RefusesDamage) {
  const TemporaryFolder folder;
  const std::string lines = many_lines();
  for (const bool with_gzip : {true, false}) {
    const std::string whole = with_gzip ? gzip(lines) : zstd(lines),
                      ending = with_gzip ? ".gz" : ".zst";
    const auto refusal = [&](const std::string& bytes) {
      const auto file = folder.file("text.jsonl" + ending, bytes);
      return error_of(ExitCode::data, [&] { TextCorpus({file}, {}); });
    };
    EXPECT_THAT(refusal(whole.substr(0, whole.size() - 1)),
                AllOf(HasSubstr("text.jsonl" + ending), HasSubstr("ends too early")));
    EXPECT_THAT(refusal(whole.substr(0, whole.size() / 2)), HasSubstr("ends too early"));
    EXPECT_THAT(refusal(whole + "x"), HasSubstr("is damaged"));
    EXPECT_THAT(refusal(""), HasSubstr("it is empty"));
    EXPECT_THAT(refusal(lines), HasSubstr("does not begin as a " + ending + " file does"));
    std::string flipped = whole;
    for (std::size_t i = whole.size() / 2; i < whole.size() / 2 + 40; ++i)
      flipped[i] = static_cast<char>(~flipped[i]);
    EXPECT_THAT(refusal(flipped), HasSubstr("is damaged"));
  }
}

TEST(Unpack, RefusesBombs) {
  const std::string zeros(std::size_t{80} << 20, '\0');
  std::size_t most = 0;
  const auto refusal = [&](const std::string& packed, Packing packing) {
    std::size_t total = 0;
    const auto sink = [&](std::string_view portion) {
      total += portion.size(), most = std::max(most, portion.size());
    };
    return error_of(ExitCode::data, [&] { unpack(packed, packing, "bomb", sink); });
  };
  EXPECT_THAT(refusal(gzip(zeros), Packing::gzip),
              HasSubstr("'bomb' is damaged (it unpacks to more than 200 times its size)"));
  EXPECT_THAT(refusal(zstd(zeros), Packing::zstd), HasSubstr("200 times"));
  EXPECT_LE(most, std::size_t{1} << 20);
}

TEST(Unpack, ALargeWindowIsNoDamage) {
  const std::string frame("\x28\xB5\x2F\xFD\x00\x90\x01\x00\x00", 9);  // 256 MiB, and no text
  const std::string refusal =
      error_of(ExitCode::data, [&] { unpack(frame, Packing::zstd, "long.zst", {}); });
  EXPECT_THAT(refusal, AllOf(HasSubstr("a window of more than 128 MiB (`zstd --long`)"),
                             testing::Not(HasSubstr("damaged"))));
}

TEST(Unpack, NamesFormatsThatAreNotRead) {
  EXPECT_THAT(error_of(ExitCode::data, [] { packing_of("BZh91AY&SY...", "a.txt.bz2"); }),
              HasSubstr("compressed with bzip2"));
  EXPECT_THAT(error_of(ExitCode::data,
                       [] {
                         packing_of(std::string_view("\xfd"
                                                     "7zXZ\0",
                                                     6),
                                    "a.xz");
                       }),
              HasSubstr("with xz"));
  EXPECT_EQ(packing_of("BZhou said", "a.txt"), Packing::none);
}

TEST(Unpack, AFileBesideItsCopyIsRefused) {
  const TemporaryFolder folder;
  folder.file("a.jsonl", "{\"text\": \"one\"}\n");
  EXPECT_EQ(data_files(folder.path()).size(), 1u);
  folder.file("a.jsonl.gz", gzip("{\"text\": \"one\"}\n"));
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder.path()); }),
              HasSubstr("are the same text"));
  EXPECT_THAT(error_of(ExitCode::data, [&] { TextCorpus({folder.path()}, {}); }),
              HasSubstr("are the same text"));
}

TEST(Unpack, AFullDiskIsNoDamage) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.txt.gz", gzip("one"));
  EXPECT_THAT(
      error_of(ExitCode::environment, [&] { TextCorpus({file}, {.scratch = "/proc/self"}); }),
      HasSubstr("cannot unpack"));
}

}  // namespace
}  // namespace tessera::data
