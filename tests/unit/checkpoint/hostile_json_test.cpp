// SPDX-License-Identifier: Apache-2.0
// JSON that is whole by its checksum and still hostile: depth, repetition and length are bounded
// before they cost anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/manifest.hpp"
#include "support/error_of.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

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
  EXPECT_THAT(error_of(ExitCode::checkpoint,
                       [&] { parse_manifest(manifest(deep("[", "]", 300'000), "[]"), "m"); }),
              HasSubstr("too deeply"));
  EXPECT_THAT(error_of(ExitCode::checkpoint,
                       [&] { parse_manifest(manifest(deep("{\"k\":", "}", 300'000), "[]"), "m"); }),
              HasSubstr("too deeply"));
}

TEST(HostileJson, AFileHasFewRunsOfTensors) {
  std::string runs = "[[0, 1]";
  for (int i = 0; i < 16; ++i) runs += ", [0, 1]";
  EXPECT_THAT(
      error_of(ExitCode::checkpoint, [&] { parse_manifest(manifest("{}", runs + "]"), "m"); }),
      HasSubstr("few runs"));
}

}  // namespace
}  // namespace tessera::checkpoint
