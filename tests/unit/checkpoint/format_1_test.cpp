// SPDX-License-Identifier: Apache-2.0
// tests/golden/checkpoint-1 was written by the first version of the format and is read for ever.
// TESSERA_WRITE_GOLDEN=DIR writes such a folder anew: for a new format version, never over the old
// one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "checkpoint_fixture.hpp"
#include "tessera/checkpoint/reshard.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(TESSERA_TEST_DATA) / "checkpoint-1";

std::vector<SampleTensor> golden_tensors() {
  return {{"model/layers.2.weight", DType::bf16, {7, 6}},
          {"model/layers.10.weight", DType::f16, {2, 3, 4}},
          {"model/none", DType::f32, {0, 5}},
          {"model/scale", DType::f64, {}},
          {"model/small.e4m3", DType::f8e4m3, {9}},
          {"model/small.e5m2", DType::f8e5m2, {9}},
          {"model/tok_embeddings.weight", DType::f32, {11, 5}},
          {"optimizer/exp_avg/tok_embeddings.weight", DType::f32, {11, 5}},
          {"optimizer/i16", DType::i16, {3}},
          {"optimizer/i32", DType::i32, {3}},
          {"optimizer/i8", DType::i8, {3}},
          {"optimizer/steps", DType::i64, {1}},
          {"optimizer/u8", DType::u8, {3}}};
}

using Format1 = Checkpoint;

/// Makes tests/golden/checkpoint-1 in $TESSERA_WRITE_GOLDEN (--gtest_also_run_disabled_tests).
TEST_F(Format1, DISABLED_IsWritten) {
  const char* to = std::getenv("TESSERA_WRITE_GOLDEN");
  ASSERT_NE(to, nullptr);
  const auto held = hold(golden_tensors(), {}, 0, true);
  const State state{
      42,
      R"({"data_position":4711,"text":"ünïcode \"quoted\"","nested":{"list":[1,2.5,null,true]}})"};
  const fs::path whole = save(*control_, options(), state, views_of(held)).folder;
  reshard(whole, {to, 3});
}

TEST_F(Format1, IsReadForEver) {
  const auto opened = open_newest(*control_, kGolden, log_);
  ASSERT_TRUE(opened);
  EXPECT_THAT(lines_, testing::IsEmpty());
  EXPECT_EQ(describe(verify(opened->folder(), true)), "");
  EXPECT_FALSE(check_hint(kGolden));
  EXPECT_EQ(opened->step(), 42);
  EXPECT_EQ(opened->mesh(), "pp1.r1.s1.cp1.tp1");
  EXPECT_EQ(opened->config_toml(), "[model]\nname = \"llama3\"\n");
  EXPECT_EQ(
      opened->extra(),
      R"({"data_position":4711,"nested":{"list":[1,2.5,null,true]},"text":"ünïcode \"quoted\""})");
  EXPECT_EQ(summarize(opened->folder()).files, 3);
  const auto blank = hold(golden_tensors(), {}, 0, false);
  load(*control_, *opened, views_of(blank));  // strict: these tensors and no others
  EXPECT_TRUE(all_right(blank));
}

/// Pinned apart from the code that makes the patterns.
TEST_F(Format1, HoldsTheseValues) {
  const CheckpointReader opened = open(*control_, kGolden / "step-00000042");
  std::uint64_t steps = 0;
  opened.read({"optimizer/steps", DType::i64, {1}, {{0}, {1}}}, &steps);
  std::uint16_t bits[2] = {};
  opened.read({"model/layers.2.weight", DType::bf16, {7, 6}, {{3, 4}, {1, 2}}}, bits);
  EXPECT_EQ(fmt::format("{:x} {:x} {:x}", steps, bits[0], bits[1]), "a4d53bb8b594094c 494f cebd");
}

}  // namespace
}  // namespace tessera::checkpoint
