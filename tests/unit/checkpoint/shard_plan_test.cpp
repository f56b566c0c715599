// SPDX-License-Identifier: Apache-2.0
#include "save/shard_plan.hpp"

#include <gtest/gtest.h>

#include <set>

#include "format/manifest.hpp"
#include "format/step_folder.hpp"
#include "format/tensor_table.hpp"

namespace tessera::checkpoint {
namespace {

TEST(ShardPlan, ReplicasShareABoxWithoutGapOrOverlap) {
  for (const Shape& shape :
       {Shape{1000, 700}, Shape{1, 1, 900'000}, Shape{3, 200'000}, Shape{10}, Shape{}, Shape{0, 4}})
    for (const int replicas : {1, 2, 3, 8}) {
      std::vector<std::byte> memory(static_cast<std::size_t>(element_count(shape)) * 4 + 4);
      std::set<const std::byte*> starts;
      std::int64_t elements = 0, largest = 0;
      for (int r = 0; r < replicas; ++r) {
        const SliceView view{
            {"model/w", DType::f32, shape, whole(shape)}, memory.data(), r, replicas};
        const auto part = owned_part(view);
        if (!part) continue;
        const Box& box = part->slice.box;
        const auto* data = static_cast<const std::byte*>(part->data);
        EXPECT_TRUE(lies_in(box, shape));
        EXPECT_EQ(data - memory.data(), RunCursor(box, whole(shape), whole(shape)).source() * 4);
        EXPECT_TRUE(starts.insert(data).second);
        elements += element_count(box);
        largest = std::max(largest, element_count(box));
      }
      EXPECT_EQ(elements, element_count(shape));
      if (shape == Shape{1000, 700} && replicas == 2) {
        EXPECT_EQ(largest, elements / 2);
      }
    }
}

TEST(ShardPlan, SmallBoxesSpreadOverTheReplicas) {
  std::vector<int> owned(4, 0);
  for (int layer = 0; layer < 100; ++layer)
    for (int r = 0; r < 4; ++r) {
      float value = 0;
      const SliceView view{
          {"model/layers." + std::to_string(layer), DType::f32, {1}, {{0}, {1}}}, &value, r, 4};
      owned[static_cast<std::size_t>(r)] += owned_part(view).has_value();
    }
  EXPECT_EQ(owned[0] + owned[1] + owned[2] + owned[3], 100);
  for (const int n : owned) EXPECT_GT(n, 10);
}

TEST(TensorTable, OrdersNumbersByValueAndFindsConflicts) {
  TensorTable table;
  for (const char* name : {"layers.10.w", "layers.2.w", "layers.2", "layers.02.w", "a"})
    table.add(name, {DType::f32, {2}, 1});
  std::vector<std::string> names;
  for (const auto& [name, row] : table.rows()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "layers.2", "layers.02.w", "layers.2.w",
                                             "layers.10.w"}));
  EXPECT_EQ(table.conflict(), "");
  TensorTable other;
  other.add("a", {DType::f32, {2}, 1});
  EXPECT_EQ(TensorTable::from_text(TensorTable::merge_texts(table.to_text(), other.to_text()))
                .rows()
                .at("a")
                .elements,
            2);
  other.add("a", {DType::f32, {3}, 1});
  EXPECT_NE(
      TensorTable::from_text(TensorTable::merge_texts(table.to_text(), other.to_text())).conflict(),
      "");
}

TEST(Manifest, RunsOfNumbersStayFewAndCoverAll) {
  EXPECT_EQ(few_runs({0, 1, 1, 2, 7, 8}), (std::vector<Range>{{0, 3}, {7, 2}}));
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < 200; ++i) numbers.push_back(i * 3 + (i > 100 ? 1000 : 0));
  const auto runs = few_runs(numbers);
  EXPECT_LE(runs.size(), 16u);
  ShardRecord shard;
  shard.tensors = runs;
  for (const std::int64_t n : numbers) EXPECT_TRUE(shard.may_hold(n));
  EXPECT_FALSE(shard.may_hold(800));  // the widest gap stays open
}

TEST(StepFolder, NamesHaveEightDigitsOrMore) {
  EXPECT_EQ(step_name(7), "step-00000007");
  EXPECT_EQ(step_name(1234567890), "step-1234567890");
  const std::string uuid = make_uuid();
  EXPECT_EQ(uuid.size(), 36u);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_NE(uuid, make_uuid());
}

}  // namespace
}  // namespace tessera::checkpoint
