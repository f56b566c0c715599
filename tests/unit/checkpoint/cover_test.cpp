// SPDX-License-Identifier: Apache-2.0
// Boxes that overlap, or leave gaps: found whatever their checksums say.
#include "load/cover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint_fixture.hpp"
#include "format/read_manifest.hpp"
#include "tessera/base/crc32c.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

bool covers(const std::vector<Box>& parts, const Shape& shape) {
  Cover cover;
  for (const Box& part : parts) cover.add(part);
  return cover.makes_up(whole(shape));
}

TEST(Cover, TellsOverlapsAndGapsOfTheSameSizeApart) {
  EXPECT_TRUE(covers({{{0}, {2}}, {{2}, {2}}}, {4}));
  EXPECT_FALSE(covers({{{0}, {2}}, {{0}, {2}}}, {4}));
  EXPECT_FALSE(covers({{{0}, {2}}, {{1}, {2}}}, {4}));
  EXPECT_FALSE(covers({{{0}, {2}}}, {4}));
  EXPECT_TRUE(covers({{{}, {}}}, {}));
  EXPECT_FALSE(covers({{{}, {}}, {{}, {}}}, {}));
  EXPECT_TRUE(covers({}, {0, 5}));
  // No cut goes through: four bars around a middle.
  const std::vector<Box> pinwheel{
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}};
  EXPECT_TRUE(covers(pinwheel, {3, 3}));
  std::vector<Box> shifted = pinwheel;
  shifted[0].offset = {0, 1};
  EXPECT_FALSE(covers(shifted, {3, 3}));
  // Corners that cancel by themselves, and dimensions that change places.
  EXPECT_FALSE(
      covers({{{0, 0}, {1, 1}}, {{1, 1}, {1, 1}}, {{0, 0}, {1, 1}}, {{1, 1}, {1, 1}}}, {2, 2}));
  EXPECT_FALSE(covers({{{0, 0}, {2, 1}}, {{0, 0}, {1, 2}}}, {2, 2}));
}

/// Random cuts of a box; one part moved by one element somewhere.
TEST(Cover, OfRandomCutsIsRightAndOfMovedPartsIsNot) {
  std::mt19937 random(3);
  const Shape shape{8, 6, 5};
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Box> parts{whole(shape)};
    for (int cut = 0; cut < 20; ++cut) {
      Box& part = parts[random() % parts.size()];
      const std::size_t d = random() % 3;
      if (part.extent[d] < 2) continue;
      Box rest = part;
      part.extent[d] = 1 + static_cast<std::int64_t>(random()) % (part.extent[d] - 1);
      rest.offset[d] += part.extent[d], rest.extent[d] -= part.extent[d];
      parts.push_back(rest);
    }
    EXPECT_TRUE(covers(parts, shape));
    const std::size_t d = random() % 3;
    Box& moved = parts[random() % parts.size()];
    if (moved.extent[d] == shape[d]) continue;
    moved.offset[d] += moved.offset[d] > 0 ? -1 : 1;
    EXPECT_FALSE(covers(parts, shape));
  }
}

class WrongBoxes : public Checkpoint {
 protected:
  /// One tensor of four numbers in two boxes; the second box is then moved onto `offset`, under
  /// right checksums.
  fs::path save_with_second_box_at(std::int64_t offset) {
    float values[] = {1, 2, 3, 4};
    const SliceView views[] = {{{"model/w", DType::f32, {4}, {{0}, {2}}}, values},
                               {{"model/w", DType::f32, {4}, {{2}, {2}}}, values + 2}};
    const fs::path step = save(*control_, options(), {1}, views).folder;
    const ShardRecord shard = read_manifest(step).manifest.shards.at(0);
    std::string bytes = content_of(step / shard.name);
    const auto words = static_cast<std::size_t>(shard.boxes.count * shard.box_row_bytes() / 8);
    std::vector<std::int64_t> table(words);
    std::memcpy(table.data(), bytes.data() + shard.boxes.offset, words * 8);
    table[4 + 2] = offset;
    std::memcpy(bytes.data() + shard.boxes.offset, table.data(), words * 8);
    put(step / shard.name, bytes);
    std::string text = content_of(step / "manifest.json");
    const std::string before = fmt::format("{:08x}", shard.boxes.crc);
    text.replace(text.find(before), 8, fmt::format("{:08x}", crc32c(0, table.data(), words * 8)));
    const std::string_view body = std::string_view(text).substr(0, text.rfind("\"crc32c\": \""));
    text = fmt::format("{}\"crc32c\": \"{:08x}\"\n}}\n", body, crc32c(0, body.data(), body.size()));
    put(step / "manifest.json", text);
    return step;
  }
  std::string message_of_load(const fs::path& step) {
    float values[4];
    const SliceView view{{"model/w", DType::f32, {4}, {{0}, {4}}}, values};
    return message_of(
        [&] {
          load(*control_, open(*control_, step), {&view, 1});
        },
        ExitCode::checkpoint);
  }
};

TEST_F(WrongBoxes, ThatOverlapAreFoundThoughTheirNumberIsRight) {
  const fs::path step = save_with_second_box_at(0);
  for (const bool deep : {false, true})
    EXPECT_THAT(describe(verify(step, deep)), HasSubstr("model/w twice"));
  EXPECT_THAT(describe(verify(step, true, 0, 2)), HasSubstr("model/w twice"));
  EXPECT_EQ(describe(verify(step, true, 1, 2)), "");
  EXPECT_THAT(message_of_load(step), HasSubstr("model/w twice"));
}

TEST_F(WrongBoxes, ThatOverlapInPartAreFound) {
  const fs::path step = save_with_second_box_at(1);
  EXPECT_THAT(describe(verify(step, false)), HasSubstr("model/w twice"));
  EXPECT_THAT(message_of_load(step), HasSubstr("model/w twice"));
}

TEST_F(WrongBoxes, InTheirPlaceAreRight) {
  const fs::path step = save_with_second_box_at(2);
  EXPECT_EQ(describe(verify(step, true)), "");
  EXPECT_EQ(message_of_load(step), "");
}

}  // namespace
}  // namespace tessera::checkpoint
