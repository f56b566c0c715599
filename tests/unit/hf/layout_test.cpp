// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tessera::hf {
namespace {

using model::HfLayout;

model::ParamSpec parameter(HfLayout layout, Shape shape) {
  model::ParamSpec spec;
  spec.global_shape = std::move(shape);
  spec.hf_layout = layout;
  spec.hf_name = layout == HfLayout::each_expert ? "experts.{}.w" : "w";
  return spec;
}

std::byte* bytes(std::vector<std::int32_t>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

/// The stored tensor of which the parameter 0, 1, 2, ... of this shape is a part; -1 elsewhere.
std::vector<std::int32_t> stored(HfLayout layout, const Shape& shape) {
  std::vector<std::int32_t> ours(static_cast<std::size_t>(element_count(shape)));
  std::iota(ours.begin(), ours.end(), 0);
  const model::ParamSpec spec = parameter(layout, shape);
  std::vector<std::int32_t> values(static_cast<std::size_t>(element_count(tensor_shape(spec))), -1);
  put_in(layout, shape, 4, bytes(ours), bytes(values));
  std::vector<std::int32_t> back(ours.size());
  take_out(layout, shape, 4, bytes(values), bytes(back));
  EXPECT_EQ(back, ours);
  return values;
}

using Integers = std::vector<std::int32_t>;

TEST(Layout, PutsElementsWhereTheFilesHaveThem) {
  EXPECT_EQ(stored(HfLayout::transposed, {1, 2, 3}), (Integers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(stored(HfLayout::even, {2, 2}), (Integers{0, -1, 1, -1, 2, -1, 3, -1}));
  EXPECT_EQ(stored(HfLayout::odd, {2, 2}), (Integers{-1, 0, -1, 1, -1, 2, -1, 3}));
  EXPECT_EQ(stored(HfLayout::even_transposed, {1, 2, 2}), (Integers{0, -1, 2, -1, 1, -1, 3, -1}));
  EXPECT_EQ(stored(HfLayout::odd_transposed, {1, 2, 2}), (Integers{-1, 0, -1, 2, -1, 1, -1, 3}));
}

TEST(Layout, ABoxOfAnyKindIsTheSamePartOfTheWhole) {
  const Shape shape{3, 4, 5};
  for (const HfLayout layout : {HfLayout::transposed, HfLayout::even, HfLayout::odd,
                                HfLayout::even_transposed, HfLayout::odd_transposed}) {
    const model::ParamSpec spec = parameter(layout, shape);
    const TensorSlice slice{"w", DType::i32, shape, {{1, 2, 1}, {2, 2, 3}}};
    const TensorSlice part = stored_box(spec, slice);
    const Integers whole = stored(layout, shape);
    Integers cut;
    const Shape& all = part.global_shape;
    for (std::int64_t i = part.box.offset[0]; i < part.box.offset[0] + part.box.extent[0]; ++i)
      for (std::int64_t j = part.box.offset[1]; j < part.box.offset[1] + part.box.extent[1]; ++j)
        for (std::int64_t k = part.box.offset[2]; k < part.box.offset[2] + part.box.extent[2]; ++k)
          cut.push_back(whole[static_cast<std::size_t>((i * all[1] + j) * all[2] + k)]);
    Integers ours(12), expected;
    take_out(layout, slice.box.extent, 4, bytes(cut), bytes(ours));
    for (std::int32_t i = 1; i < 3; ++i)
      for (std::int32_t j = 2; j < 4; ++j)
        for (std::int32_t k = 1; k < 4; ++k) expected.push_back((i * 4 + j) * 5 + k);
    EXPECT_EQ(ours, expected) << static_cast<int>(layout);
  }
}

TEST(Layout, NamesOneTensorForEachExpert) {
  const model::ParamSpec spec = parameter(HfLayout::each_expert, {8, 2, 3});
  EXPECT_EQ(tensor_count(spec), 8);
  EXPECT_EQ(tensor_name(spec, 5), "experts.5.w");
  EXPECT_EQ(tensor_shape(spec), (Shape{2, 3}));
}

/// Heads of 4 rows: pairs that are neighbours here are half a head apart there.
TEST(Layout, RowsOfHeadsAreHalvesThere) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 8; ++row) rows.push_back(stored_row(row, 4));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{0, 2, 1, 3, 4, 6, 5, 7}));
}

}  // namespace
}  // namespace tessera::hf
