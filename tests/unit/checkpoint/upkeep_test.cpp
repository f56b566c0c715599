// SPDX-License-Identifier: Apache-2.0
// What is done to checkpoints afterwards: which ones stay, how two differ, the same one in other
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "checkpoint_fixture.hpp"
#include "tessera/checkpoint/compare.hpp"
#include "tessera/checkpoint/reshard.hpp"
#include "tessera/checkpoint/retention.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Upkeep : public Checkpoint {
 protected:
  std::vector<std::string> planned(const PruneOptions& options) const {
    std::vector<std::string> names;
    for (const Removal& removal : plan_prune(folder_.path(), options))
      names.push_back(removal.path.filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Saves one float tensor a step; gives the opened checkpoint.
  CheckpointReader save_values(std::int64_t step, std::vector<float> values,
                               DType dtype = DType::f32) {
    const auto count = static_cast<std::int64_t>(values.size() * 4 / size_of(dtype));
    const SliceView view{{"model/w", dtype, {count}, {{0}, {count}}}, values.data()};
    return open(*control_, save(*control_, options(), {step}, {&view, 1}).folder);
  }
  static std::vector<TensorComparison> comparisons(const CheckpointReader& a,
                                                   const CheckpointReader& b) {
    std::vector<TensorComparison> all;
    compare(a, b, [&](const TensorComparison& one) { all.push_back(one); });
    return all;
  }
};

TEST_F(Upkeep, EveryNthIsKeptForEver) {
  SaveOptions some = options(2);
  some.keep_every = 3;
  for (int step = 1; step <= 8; ++step) save_step(step, some);
  EXPECT_THAT(names(), ElementsAre("LATEST", "step-00000003", "step-00000006", "step-00000007",
                                   "step-00000008"));
}

TEST_F(Upkeep, WhatWasJustSavedStays) {
  for (const int step : {1, 3, 4, 5}) save_step(step);
  for (const char* step : {"step-00000003", "step-00000004", "step-00000005"}) damage_data(step);
  save_step(2, options(2));  // resumed from step 1; 3, 4 and 5 look complete
  EXPECT_THAT(names(), ElementsAre("LATEST", "step-00000001", "step-00000002", "step-00000003",
                                   "step-00000004", "step-00000005"));
  auto blank = hold(sample_tensors(), {}, 0, false);
  EXPECT_EQ(load_newest(*control_, folder_.path(), views_of(blank))->step(), 2);
}

TEST_F(Upkeep, PruneKeepsTheNewestWholeOne) {
  for (const int step : {10, 15, 20, 25, 30}) save_step(step);
  EXPECT_THAT(planned({{2, 0}}), ElementsAre("step-00000010", "step-00000015", "step-00000020"));
  EXPECT_THAT(planned({{1, 10}}), ElementsAre("step-00000015", "step-00000025"));
  EXPECT_THAT(planned({{9, 0}}), testing::IsEmpty());
  EXPECT_THAT(message_of(
                  [&] {
                    planned({{0, 10}});
                  },
                  ExitCode::usage),
              HasSubstr("at least the latest"));
  damage_data("step-00000030");  // looks complete: only reading all of it tells
  EXPECT_THAT(planned({{1, 0}}), ElementsAre("step-00000010", "step-00000015", "step-00000020"));
  PruneOptions with_damaged{{1, 0}, true};
  EXPECT_THAT(planned(with_damaged),
              ElementsAre("step-00000010", "step-00000015", "step-00000020"));
  damage(folder_ / "step-00000020/manifest.json", 200);
  EXPECT_THAT(planned({{1, 0}}), ElementsAre("step-00000010", "step-00000015"));
  EXPECT_THAT(planned(with_damaged),
              ElementsAre("step-00000010", "step-00000015", "step-00000020"));
  prune(folder_.path(), plan_prune(folder_.path(), with_damaged));
  EXPECT_THAT(names(), ElementsAre("LATEST", "step-00000025", "step-00000030"));
  damage_data("step-00000025");
  EXPECT_THAT(planned({{1, 0}}), testing::IsEmpty());  // nothing is whole: nothing goes
  EXPECT_THAT(planned(with_damaged), testing::IsEmpty());
}

TEST_F(Upkeep, LatestIsTheHighestStep) {
  save_step(30);
  save_step(10);  // of a run that has started from an older step
  EXPECT_FALSE(check_hint(folder_.path()));
}

TEST_F(Upkeep, PruneTakesLeftoversWhenTold) {
  save_step(1);
  save_step(2);
  const std::string partial = "step-00000003.partial-x", damaged = "step-00000001.damaged-x";
  for (const std::string& name :
       {partial, damaged, std::string("step-00000001.deleting-x"), std::string("mine")})
    fs::create_directories(folder_ / name);
  EXPECT_THAT(planned({{2, 0}}), ElementsAre("step-00000001.deleting-x"));
  EXPECT_THAT(planned({{2, 0}, true}), ElementsAre(damaged, "step-00000001.deleting-x"));
  PruneOptions all{{2, 0}, true, true};
  EXPECT_THAT(planned(all),
              ElementsAre(damaged, "step-00000001.deleting-x"));  // that save may still be running
  all.stale_partial_seconds = -1;
  EXPECT_THAT(planned(all), ElementsAre(damaged, "step-00000001.deleting-x", partial));
  prune(folder_.path(), plan_prune(folder_.path(), all));
  EXPECT_THAT(names(), ElementsAre("LATEST", "mine", "step-00000001", "step-00000002"));
}

TEST_F(Upkeep, DifferencesAreMeasured) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  const CheckpointReader a = save_values(1, {1, 2, 4, nan, 0, -8}),
                         same = save_values(2, {1, 2, 4, nan, 0, -8});
  const CheckpointReader b = save_values(3, {1, 2.5, 4, nan, -0.0f, -10}),
                         c = save_values(4, {1, 2, 4, 7, 0, -8});
  const CheckpointReader other_shape = save_values(5, {1, 2}),
                         bits = save_values(6, {1, 2}, DType::i32);
  EXPECT_TRUE(comparisons(a, same).at(0).is_equal());
  const TensorComparison ab = comparisons(a, b).at(0);
  EXPECT_EQ(ab.name, "model/w");
  EXPECT_EQ(ab.elements, 6);
  EXPECT_EQ(ab.differing, 3);  // -0 has other bits and the same value
  EXPECT_EQ(ab.max_abs, 2);
  EXPECT_EQ(ab.max_rel, 0.2);
  EXPECT_FALSE(ab.is_equal());
  EXPECT_EQ(comparisons(a, c).at(0).max_abs, inf);
  EXPECT_FALSE(comparisons(a, other_shape).at(0).compared);
  EXPECT_FALSE(comparisons(other_shape, bits).at(0).compared);
  EXPECT_FALSE(comparisons(other_shape, bits).at(0).is_equal());
}

TEST_F(Upkeep, TensorsOfOneSideAndOfOtherTypesDiffer) {
  const float one[3] = {1, 2, 3};
  const double two[3] = {1, 2, 3.5};
  const SliceView a[] = {{{"model/w", DType::f32, {3}, {{0}, {3}}}, const_cast<float*>(one)},
                         {{"model/b10", DType::f32, {3}, {{0}, {3}}}, const_cast<float*>(one)}};
  const SliceView b[] = {{{"model/w", DType::f64, {3}, {{0}, {3}}}, const_cast<double*>(two)},
                         {{"model/b9", DType::f32, {3}, {{0}, {3}}}, const_cast<float*>(one)}};
  const auto all = comparisons(open(*control_, save(*control_, options(), {1}, a).folder),
                               open(*control_, save(*control_, options(), {2}, b).folder));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "model/b9");
  EXPECT_FALSE(all[0].a || all[0].is_equal());
  EXPECT_FALSE(all[1].b || all[1].is_equal());
  EXPECT_EQ(all[2].differing, 1);
  EXPECT_EQ(all[2].max_abs, 0.5);
  EXPECT_FALSE(all[2].is_equal());
}

TEST_F(Upkeep, OtherFilesHoldTheSameBits) {
  const auto held = hold(sample_tensors(true), {}, 0, true);
  const fs::path from = save(*control_, options(), {7, R"({"seed":3})"}, views_of(held)).folder;
  const CheckpointReader source = open(*control_, from);
  for (const int files : {1, 2, 5, 64}) {
    const TemporaryFolder other;
    const fs::path to = reshard(from, {other.path(), files});
    EXPECT_EQ(to, other / "step-00000007");
    EXPECT_EQ(describe(verify(to, true)), "");
    EXPECT_FALSE(check_hint(other.path()));
    const CheckpointReader opened = open(*control_, to);
    EXPECT_EQ(summarize(to).files, files);
    EXPECT_EQ(opened.extra(), source.extra());
    EXPECT_EQ(opened.mesh(), source.mesh());
    EXPECT_EQ(opened.config_toml(), source.config_toml());
    EXPECT_NE(opened.uuid(), source.uuid());
    compare(source, opened,
            [](const TensorComparison& one) { EXPECT_TRUE(one.is_equal()) << one.name; });
    const auto blank = hold(sample_tensors(true), {}, 0, false);
    load(*control_, opened, views_of(blank));
    EXPECT_TRUE(all_right(blank));
    EXPECT_THAT(message_of(
                    [&] {
                      reshard(from, {other.path(), files});
                    },
                    ExitCode::usage),
                HasSubstr("exists"));
  }
  EXPECT_THAT(message_of(
                  [&] {
                    reshard(from, {folder_ / "x", 0});
                  },
                  ExitCode::usage),
              HasSubstr("at least one file"));
}

TEST_F(Upkeep, DamageIsNotCarriedIntoOtherFiles) {
  save_step(1);
  damage_data("step-00000001");
  const TemporaryFolder other;
  EXPECT_THAT(message_of(
                  [&] {
                    reshard(folder_ / "step-00000001", {other.path(), 2});
                  },
                  ExitCode::checkpoint),
              HasSubstr("the checksum of block 0 of"));
  EXPECT_TRUE(fs::is_empty(other.path()));
}

}  // namespace
}  // namespace tessera::checkpoint
