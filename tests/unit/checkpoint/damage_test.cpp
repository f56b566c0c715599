// SPDX-License-Identifier: Apache-2.0
// No damaged byte may go unseen, and none may crash the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "format/read_manifest.hpp"
#include "sample.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/checkpoint/save.hpp"

namespace tessera::checkpoint {
namespace {

using tessera::test::content_of;
using tessera::test::put;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;

class Damage : public testing::Test {
 protected:
  Damage() {
    const auto held = hold(sample_tensors(), {}, 0, true);
    step_ = save(*control_, {folder_.path(), "pp0.r0.s0.cp0.tp0", "pp1", "x = 1\n"}, {1},
                 views_of(held))
                .folder;
    for (const auto& entry : fs::directory_iterator(step_))
      files_[entry.path()] = content_of(entry.path());
  }
  /// Loads everything: true when that went well and every bit is right. A wrong bit is a failure of
  /// the test.
  bool loads() {
    auto blank = hold(sample_tensors(), {}, 0, false);
    try {
      load(*control_, open(*control_, step_), views_of(blank));
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ExitCode::checkpoint || error.code() == wrong_shape_)
          << error.what();
      return false;
    }
    EXPECT_TRUE(all_right(blank));
    return true;
  }
  bool verifies() { return verify(step_, true).empty(); }

  /// Rewrites the manifest with `from` replaced, under a right checksum, and tries everything.
  void tamper(const std::string& from, const std::string& to, bool must_be_seen = true) {
    const fs::path path = step_ / "manifest.json";
    std::string text = files_[path];
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const std::string_view body = std::string_view(text).substr(0, text.rfind("\"crc32c\": \""));
    text = fmt::format("{}\"crc32c\": \"{:08x}\"\n}}\n", body, crc32c(0, body.data(), body.size()));
    put(path, text);
    const bool seen = !verifies();
    EXPECT_TRUE(seen || !must_be_seen) << from << " -> " << to;
    const bool loaded = loads();  // right, or refused
    EXPECT_TRUE(seen || loaded);
    put(path, files_[path]);
  }

  TemporaryFolder folder_;
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("control");
  fs::path step_;
  // usage where a test changes shapes in the manifest
  ExitCode wrong_shape_ = ExitCode::checkpoint;
  std::map<fs::path, std::string> files_;
};

TEST_F(Damage, TheSampleIsWhole) {
  EXPECT_TRUE(verifies());
  EXPECT_TRUE(loads());
  EXPECT_EQ(files_.size(), 3u);  // manifest, shard, index
}

TEST_F(Damage, EveryFlippedByteIsFound) {
  std::mt19937 random(5);
  for (const auto& [path, good] : files_) {
    for (int i = 0; i < 150; ++i) {
      std::string bad = good;
      const std::size_t at =
          i < 20 ? static_cast<std::size_t>(i) * (good.size() - 1) / 19 : random() % good.size();
      bad[at] = static_cast<char>(bad[at] ^ (1 + random() % 255));
      put(path, bad);
      EXPECT_FALSE(verifies()) << path << " byte " << at;
      loads();  // right, or refused
    }
    put(path, good);
  }
  EXPECT_TRUE(verifies());
}

TEST_F(Damage, EveryCutOrGrownOrMissingFileIsFound) {
  std::mt19937 random(6);
  for (const auto& [path, good] : files_) {
    for (int i = 0; i < 20; ++i) {
      put(path, good.substr(0, random() % good.size()));
      EXPECT_FALSE(verifies());
      loads();
    }
    put(path, good + "x");
    EXPECT_FALSE(verifies());
    fs::remove(path);
    const bool for_people_only = path.filename() == "index.h5";
    EXPECT_EQ(verifies(), for_people_only);
    EXPECT_EQ(loads(), for_people_only);
    fs::create_directory(path);
    EXPECT_FALSE(verifies());
    fs::remove(path);
    put(path, good);
  }
}

TEST_F(Damage, BlocksOfBytesFromElsewhereAreFound) {
  const fs::path shard = step_ / "shard-pp0.r0.s0.cp0.tp0.h5";
  std::mt19937 random(8);
  for (int i = 0; i < 50; ++i) {
    std::string bad = files_[shard];
    const std::size_t bytes = 1 + random() % 512, from = random() % (bad.size() - bytes),
                      to = random() % (bad.size() - bytes);
    bad.replace(to, bytes, files_[shard], from, bytes);
    if (bad == files_[shard]) continue;
    put(shard, bad);
    EXPECT_FALSE(verifies());
    loads();
  }
}

/// As a program with a mistake, or with bad intent, would write it: every checksum is right.
TEST_F(Damage, ABoxTableWithARightChecksumAndWrongContentsDoesNotCrash) {
  const Manifest manifest = read_manifest(step_).manifest;
  const ShardRecord& shard = manifest.shards.at(0);
  const std::string good = files_[step_ / shard.name];
  const auto words = static_cast<std::size_t>(shard.boxes.count * shard.box_row_bytes() / 8);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  std::mt19937 random(9);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::int64_t> table(words);
    std::memcpy(table.data(), good.data() + shard.boxes.offset, words * 8);
    std::int64_t& word = table[random() % words];
    const std::int64_t before = word, odd[] = {before + 1,
                                               before - 1,
                                               -before,
                                               before << 32,
                                               least,
                                               most,
                                               most / 2,
                                               table[random() % words],
                                               static_cast<std::int64_t>(random() % 64)};
    word = odd[random() % std::size(odd)];
    std::string bad = good;
    std::memcpy(bad.data() + shard.boxes.offset, table.data(), words * 8);
    put(step_ / shard.name, bad);
    if (word == before) continue;
    tamper(fmt::format("{:08x}", shard.boxes.crc),
           fmt::format("{:08x}", crc32c(0, table.data(), words * 8)), false);
  }
}

TEST_F(Damage, AManifestWithARightChecksumAndWrongContentsDoesNotCrash) {
  wrong_shape_ = ExitCode::usage;
  tamper("\"version\": [1,0]", "\"version\": [2,0]");
  tamper("\"version\": [1,0]", "\"version\": [1,7], \"new\": {\"field\": []}",
         false);  // a newer minor version
  tamper("tessera-checkpoint", "tessera-chessboard");
  tamper("\"block_bytes\": 4194304", "\"block_bytes\": 1");
  tamper("\"step\": 1", "\"step\": -1");
  tamper("[37,16]", "[37,17]");
  tamper("[37,16]", "[4611686018427387904,16]");
  tamper("[37,16]", "[37,-16]");
  tamper("[37,16]", "[592]");
  tamper("\"bf16\"", "\"f64\"");
  tamper("\"bf16\"", "\"f99\"");
  tamper("\"box_dims\":3", "\"box_dims\":2");
  tamper("\"box_dims\":3", "\"box_dims\":4000000000");
  tamper("\"boxes\":{\"offset\":", "\"boxes\":{\"offset\":9");
  tamper("\"count\":", "\"count\":4611686018427387904");
  tamper("\"count\":", "\"count\":4");
  tamper("shard-pp0", "../step-00000001/shard-pp0");
  tamper("shard-pp0", "shard-pp9");
  tamper("\"tensors\": [", "\"tensors\": [[[[");
  tamper("\"tensors\": [", "\"tensors\": [7,");
  tamper("\"files\": [", "\"files\": [{},");
  tamper("\"files\": [", "\"files\": 7, \"x\": [");
  tamper("model/none", "model/step_scale");
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  tamper("\"state\": {}", "\"state\": " + nested(50), false);
  tamper("\"state\": {}",
         "\"state\": " + nested(300'000));  // would use up the stack when written again
}

}  // namespace
}  // namespace tessera::checkpoint
