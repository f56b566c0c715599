// SPDX-License-Identifier: Apache-2.0
// JSON that is whole by its checksum and still hostile: depth, repetition and length are bounded
// before they cost anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json_text.hpp"
#include "manifest.hpp"
#include "tessera/base/crc32c.hpp"

namespace tessera::checkpoint {
namespace {

using testing::HasSubstr;

template <class Read>
std::string refusal(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::checkpoint) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

/// A manifest of one shard with the given members, sealed.
std::string manifest(const std::string& state, const std::string& runs) {
  std::string text =
      R"({"format": "tessera-checkpoint", "version": [1, 0], "block_bytes": 4194304, "uuid": "u", "step": 1,
    "mesh": "", "written": "", "writer": "", "config": "", "index": null, "tensors": [["a", "f32", [2]]], "state": )" +
      state +
      R"(, "files": [{"name": "s.h5", "bytes": 64, "header_crc32c": "00000000", "box_dims": 1,
    "boxes": {"offset": 0, "count": 1, "crc32c": "00000000"}, "checksums": {"offset": 0, "count": 1, "crc32c": "00000000"},
    "tensors": )" +
      runs + "}],\n";
  return text + fmt::format("\"crc32c\": \"{:08x}\"\n}}\n", crc32c(0, text.data(), text.size()));
}

TEST(HostileJson, DepthIsBoundedBeforeAnythingRecurses) {
  const auto deep = [](const char* open, const char* close, int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    text += "1";
    for (int i = 0; i < levels; ++i) text += close;
    return text;
  };
  EXPECT_EQ(parse_manifest(manifest(deep("[", "]", 40), "[]"), "m").step, 1);
  EXPECT_THAT(refusal([&] { parse_manifest(manifest(deep("[", "]", 300'000), "[]"), "m"); }),
              HasSubstr("too deeply"));
  EXPECT_THAT(refusal([&] { parse_manifest(manifest(deep("{\"k\":", "}", 300'000), "[]"), "m"); }),
              HasSubstr("too deeply"));
}

TEST(HostileJson, AFileHasFewRunsOfTensors) {
  std::string runs = "[[0, 1]";
  for (int i = 0; i < 16; ++i) runs += ", [0, 1]";
  EXPECT_THAT(refusal([&] { parse_manifest(manifest("{}", runs + "]"), "m"); }),
              HasSubstr("few runs"));
}

TEST(HostileJson, RepeatedKeysAreRefused) {
  const TextSource source{"m", ExitCode::checkpoint};
  EXPECT_THAT(refusal([&] { parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", source); }),
              HasSubstr("\"b\" occurs twice"));
}

TEST(HostileJson, ValuesOfEveryKindArriveAsTheyStandThere) {
  const TextSource source{"m", ExitCode::checkpoint};
  const std::string text =
      R"({"a":[null,true,false,-3,18446744073709551615,0.5,"x\u00e9",[],{}],"b":{"c":[[1],{"d":2}]}})";
  EXPECT_EQ(parse_json(text, source), nlohmann::json::parse(text));
  for (const char* scalar : {"7", "\"x\"", "null", "[]"})
    EXPECT_EQ(parse_json(scalar, source), nlohmann::json::parse(scalar));
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,}", "[1] 2", "{\"a\" 1}", "1e999", "nul"})
    EXPECT_THAT(refusal([&] { parse_json(bad, source); }), HasSubstr("not JSON"));
}

/// As many tensors as large mixtures have: minutes where each costs as much as those before it.
TEST(HostileJson, TimeGrowsWithTheTextAndNotWithItsSquare) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i)
    text += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                        i == 0 ? "" : ",", i);
  EXPECT_EQ(parse_json(text + "}", {"m", ExitCode::checkpoint}).size(), 200'000u);
}

TEST(HostileJson, MessagesQuoteAFewWordsOnly) {
  const TextSource source{"m", ExitCode::checkpoint};
  const std::string word(1 << 20, 'x');
  EXPECT_LT(refusal([&] { parse_json("[\"" + word, source); }).size(), 1000u);
  EXPECT_LT(
      refusal([&] { parse_json("{\"" + word + "\": 1, \"" + word + "\": 1}", source); }).size(),
      1000u);
}

}  // namespace
}  // namespace tessera::checkpoint
