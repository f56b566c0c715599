// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/tensorboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "support/temporary_folder.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"

namespace tessera::metrics {
namespace {

using tessera::test::content_of;
using tessera::test::TemporaryFolder;

template <class Number>
Number take(std::string_view& bytes) {
  Number value{};
  std::memcpy(&value, bytes.substr(0, sizeof value).data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

/// Records of a file, with both checksums checked.
std::vector<std::string> frames(std::string_view bytes) {
  std::vector<std::string> all;
  while (!bytes.empty()) {
    const std::string_view length_bytes = bytes.substr(0, 8);
    const auto length = take<std::uint64_t>(bytes);
    EXPECT_EQ(unmasked(take<std::uint32_t>(bytes)), crc32c(0, length_bytes.data(), 8));
    all.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
    EXPECT_EQ(unmasked(take<std::uint32_t>(bytes)), crc32c(0, all.back().data(), length));
  }
  return all;
}

/// Fields of a message by number: 8 or 4 bytes, a varint's value, or a text.
std::multimap<unsigned, std::pair<std::uint64_t, std::string>> fields(std::string_view bytes) {
  std::multimap<unsigned, std::pair<std::uint64_t, std::string>> all;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    const auto number = static_cast<unsigned>(key >> 3);
    if (key % 8 == 0) all.emplace(number, std::pair(take_varint(bytes), ""));
    if (key % 8 == 1) all.emplace(number, std::pair(take<std::uint64_t>(bytes), ""));
    if (key % 8 == 5) all.emplace(number, std::pair(take<std::uint32_t>(bytes), ""));
    if (key % 8 != 2) continue;
    const std::uint64_t length = take_varint(bytes);
    all.emplace(number, std::pair(0, std::string(bytes.substr(0, length))));
    bytes.remove_prefix(length);
  }
  return all;
}

std::map<std::string, float> scalars(std::string_view event) {
  std::map<std::string, float> all;
  const auto summary = fields(fields(event).find(5)->second.second);
  for (const auto& [number, value] : summary) {
    const auto entry = fields(value.second);
    all[entry.find(1)->second.second] =
        std::bit_cast<float>(static_cast<std::uint32_t>(entry.find(2)->second.first));
  }
  return all;
}

StepRecord record_of(std::int64_t step) {
  StepRecord r;
  r.step = step;
  r.loss = 4.25;
  r.grad_norm = std::numeric_limits<double>::quiet_NaN();
  r.lr = 1e-3;
  r.tokens = 4096;
  r.step_seconds = 0.5;
  r.tokens_per_second = 8192;
  r.tps = 1024;
  r.mfu = std::numeric_limits<double>::quiet_NaN();
  r.memory_bytes = 123456789;
  r.extra = {{"time/forward", 0.25}};
  return r;
}

TEST(TensorBoard, AnEmptyRecordHasTheKnownBytes) {
  using namespace std::string_literals;
  // As TensorFlow writes it: the masked CRC-32C of eight zero bytes and of nothing.
  EXPECT_EQ(tensorboard_frame(""), "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2"s);
}

TEST(TensorBoard, EachStepIsAnEventWithTheScalarsOfItsRecord) {
  const TemporaryFolder folder;
  TensorBoardWriter writer(folder / "tb/20261123-0815", 1);
  writer.write(record_of(1));
  writer.write(record_of(std::int64_t{1} << 40));
  const auto all = frames(content_of(writer.file()));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(fields(all[0]).find(3)->second.second, "brain.Event:2");
  EXPECT_EQ(fields(all[1]).find(2)->second.first, 1u);
  EXPECT_EQ(fields(all[2]).find(2)->second.first, std::uint64_t{1} << 40);
  EXPECT_GT(std::bit_cast<double>(fields(all[1]).find(1)->second.first), 1.7e9)
      << "seconds since 1970";
  const auto values = scalars(all[1]);
  EXPECT_EQ(values.at("loss"), 4.25f);
  EXPECT_EQ(values.at("lr"), 1e-3f);
  EXPECT_EQ(values.at("memory_bytes"), 123456789.0f);
  EXPECT_EQ(values.at("time/forward"), 0.25f);
  EXPECT_TRUE(std::isnan(values.at("grad_norm")));
  EXPECT_FALSE(values.contains("mfu")) << "not known";
  EXPECT_FALSE(values.contains("step"));
}

TEST(TensorBoard, AResumedRunVoidsLaterSteps) {
  const TemporaryFolder folder;
  const TensorBoardWriter first(folder / "tb", 1), second(folder / "tb", 21);
  EXPECT_NE(first.file(), second.file());
  EXPECT_THAT(second.file().filename().string(), testing::StartsWith("events.out.tfevents."));
  const auto all = frames(content_of(second.file()));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(fields(all[1]).find(2)->second.first, 21u);
  EXPECT_EQ(fields(fields(all[1]).find(7)->second.second).find(1)->second.first, 1u) << "START";
}

TEST(TensorBoard, AFolderThatCannotBeMadeIsNamed) {
  EXPECT_THROW(TensorBoardWriter("/proc/no/tb", 1), Error);
  EXPECT_THAT(tensorboard_stamp(), testing::MatchesRegex("[0-9]{8}-[0-9]{4}"));
}

}  // namespace
}  // namespace tessera::metrics
