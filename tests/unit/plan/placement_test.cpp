// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/placement.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::plan {
namespace {

using enum ReduceOver;
using Kind = model::Placement;

model::ParamSpec spec_of(Kind kind, Shape shape, int max_pieces = 0) {
  model::ParamSpec spec{"w", std::move(shape), kind, {}, "w"};
  spec.max_pieces = max_pieces;
  return spec;
}

/// A rank of a mesh, and what it must have of a parameter.
struct Row {
  const char* name;
  model::ParamSpec spec;
  mesh::Degrees degrees;  // pp, dp_replicate, dp_shard, cp, tp, ep, etp
  int rank;
  PlacementOptions options;
  Shape shape, offset;
  Range rows;
  std::int64_t chunk_rows, parts;
  int tp_copies, replica, replicas;
  std::vector<ReduceOver> reduce_over;
};

constexpr PlacementOptions kWhole{.sequence_parallel = false};
constexpr PlacementOptions kLastOfTwo{.stage_copy = 1, .stage_copies = 2};

const std::vector<Row>& table() {
  // clang-format off
  static const std::vector<Row> rows{
      {"one rank", spec_of(Kind::column, {8, 6}), {1, 1, 1, 1, 1}, 0, {},
       {8, 6}, {0, 0}, {0, 8}, 8, 1, 1, 0, 1, {fsdp}},
      {"column", spec_of(Kind::column, {8, 6}), {1, 1, 1, 1, 2}, 1, {},
       {4, 6}, {4, 0}, {0, 4}, 4, 1, 1, 0, 1, {fsdp}},
      {"row", spec_of(Kind::row, {8, 6}), {1, 1, 1, 1, 2}, 1, {},
       {8, 3}, {0, 3}, {0, 8}, 8, 1, 1, 0, 1, {fsdp}},
      {"vocabulary over two axes", spec_of(Kind::vocabulary, {12, 4}), {1, 1, 2, 1, 2}, 3, {},
       {6, 4}, {6, 0}, {3, 3}, 3, 1, 1, 0, 1, {fsdp}},
      {"replicated", spec_of(Kind::replicated, {6}), {1, 1, 1, 1, 2}, 1, {},
       {6}, {0}, {0, 6}, 6, 1, 2, 1, 2, {fsdp, tp_copies}},
      {"replicated, whole tokens", spec_of(Kind::replicated, {6}), {1, 1, 1, 1, 2}, 1,
       kWhole, {6}, {0}, {0, 6}, 6, 1, 2, 1, 2, {fsdp}},
      {"shared, whole tokens", spec_of(Kind::shared, {6}), {1, 1, 1, 1, 2}, 0,
       kWhole, {6}, {0}, {0, 6}, 6, 1, 2, 0, 2, {fsdp, tp_copies}},
      {"short last chunk", spec_of(Kind::replicated, {5}), {1, 1, 4, 1, 1}, 2, {},
       {5}, {0}, {4, 1}, 2, 1, 1, 0, 1, {fsdp}},
      {"empty last chunk", spec_of(Kind::replicated, {5}), {1, 1, 4, 1, 1}, 3, {},
       {5}, {0}, {5, 0}, 2, 1, 1, 0, 1, {fsdp}},
      {"context shards too", spec_of(Kind::row, {8, 6}), {1, 1, 2, 2, 1}, 2, {},
       {8, 6}, {0, 0}, {4, 2}, 2, 1, 1, 0, 1, {fsdp}},
      {"few key-value heads", spec_of(Kind::column, {8, 6}, 2), {1, 1, 1, 1, 4}, 3, {},
       {4, 6}, {4, 0}, {0, 4}, 4, 1, 2, 1, 2, {fsdp, tp_copies}},
      {"as many key-value heads", spec_of(Kind::column, {8, 6}, 4), {1, 1, 1, 1, 4}, 3, {},
       {2, 6}, {6, 0}, {0, 2}, 2, 1, 1, 0, 1, {fsdp}},
      {"replicas", spec_of(Kind::column, {8, 6}), {1, 2, 2, 1, 1}, 2, {},
       {8, 6}, {0, 0}, {0, 4}, 4, 1, 1, 1, 2, {fsdp, replicate}},
      {"replicas of copies", spec_of(Kind::replicated, {6}), {1, 2, 1, 1, 2}, 3, {},
       {6}, {0}, {0, 6}, 6, 1, 2, 3, 4, {fsdp, replicate, tp_copies}},
      {"tied, last stage", spec_of(Kind::vocabulary, {12, 4}), {2, 1, 1, 1, 1}, 1,
       kLastOfTwo, {12, 4}, {0, 0}, {0, 12}, 12, 1, 1, 1, 2, {fsdp, tied}},
      {"tied, replicas", spec_of(Kind::vocabulary, {12, 4}), {2, 2, 1, 1, 1}, 3,
       kLastOfTwo, {12, 4}, {0, 0}, {0, 12}, 12, 1, 1, 3, 4, {fsdp, replicate, tied}},
      {"experts", spec_of(Kind::expert, {4, 6, 2}), {1, 1, 4, 1, 1, 2}, 3, {},
       {2, 6, 2}, {2, 0, 0}, {1, 1}, 1, 1, 1, 0, 1, {fsdp}},
      {"experts borrow tp", spec_of(Kind::expert_column, {4, 6, 2}), {1, 1, 1, 1, 2}, 1, {},
       {4, 6, 2}, {0, 0, 0}, {2, 2}, 2, 1, 1, 0, 1, {fsdp}},
      {"fewer experts than ranks", spec_of(Kind::expert_row, {2, 6, 2}), {1, 1, 4, 1, 1}, 3, {},
       {2, 6, 2}, {0, 0, 0}, {3, 1}, 1, 2, 1, 0, 1, {fsdp}},
      {"columns of experts", spec_of(Kind::expert_column, {4, 6, 2}), {1, 1, 1, 1, 2, 1, 2}, 1, {},
       {4, 3, 2}, {0, 3, 0}, {0, 4}, 4, 1, 1, 0, 1, {fsdp}},
      {"rows of experts", spec_of(Kind::expert_row, {4, 6, 2}), {1, 1, 1, 1, 2, 1, 2}, 1, {},
       {4, 6, 1}, {0, 0, 1}, {0, 4}, 4, 1, 1, 0, 1, {fsdp}},
      {"bias of shared experts", spec_of(Kind::expert, {4, 6}), {1, 1, 2, 1, 2, 2, 2}, 3, kWhole,
       {2, 6}, {2, 0}, {0, 2}, 2, 1, 2, 1, 2, {fsdp, tp_copies}}};
  // clang-format on
  return rows;
}

mesh::Layout layout_of(const mesh::Degrees& degrees) {
  return mesh::Layout::resolve(
      degrees, degrees.pp * degrees.dp_replicate * degrees.dp_shard * degrees.cp * degrees.tp);
}

TEST(Placement, OfEveryKind) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.name);
    const Placement placed =
        place(row.spec, layout_of(row.degrees), mesh::Rank(row.rank), row.options);
    EXPECT_EQ(placed.local_shape, row.shape);
    EXPECT_EQ(placed.local_offset, row.offset);
    EXPECT_EQ(placed.rows, row.rows);
    EXPECT_EQ(placed.chunk_rows, row.chunk_rows);
    EXPECT_EQ(placed.parts, row.parts);
    EXPECT_EQ(placed.tp_copies, row.tp_copies);
    EXPECT_EQ(placed.replica, row.replica);
    EXPECT_EQ(placed.replicas, row.replicas);
    EXPECT_EQ(placed.counted(), row.replica == 0);
    EXPECT_EQ(placed.reduce_over, row.reduce_over);
  }
}

TEST(Placement, APartOfAnExpertIsABox) {
  const model::ParamSpec spec = spec_of(Kind::expert, {2, 6, 2});
  const TensorSlice slice =
      place(spec, layout_of({1, 1, 4, 1, 1}), mesh::Rank(3)).slice(spec, "model/", DType::f32);
  EXPECT_EQ(slice.name, "model/w");
  EXPECT_EQ(slice.box, (Box{{1, 3, 0}, {1, 3, 2}}));
}

/// Adds 1 to the elements of the box in `seen`, whose shape has as many dimensions as three.
void mark(std::vector<int>& seen, TensorSlice slice) {
  Box& box = slice.box;
  for (Shape* shape : {&slice.global_shape, &box.extent}) shape->resize(3, 1);
  box.offset.resize(3, 0);
  for (std::int64_t i = 0; i < element_count(box); ++i) {
    const std::int64_t z = i % box.extent[2], y = i / box.extent[2] % box.extent[1];
    const std::int64_t x = i / box.extent[2] / box.extent[1];
    const std::int64_t row = (box.offset[0] + x) * slice.global_shape[1] + box.offset[1] + y;
    ++seen[static_cast<std::size_t>(row * slice.global_shape[2] + box.offset[2] + z)];
  }
}

/// Every mesh of eight ranks without a pipeline, with all ways of sharing eight experts.
std::vector<mesh::Layout> layouts_of_eight() {
  std::vector<mesh::Layout> layouts;
  for (int r = 1; r <= 8; r *= 2)
    for (int s = 1; r * s <= 8; s *= 2)
      for (int c = 1; r * s * c <= 8; c *= 2) {
        const int t = 8 / (r * s * c);
        for (const int etp : {1, t})
          for (int ep = 1; ep <= s * c * (etp > 1 ? 1 : t); ep *= 2)
            layouts.push_back(mesh::Layout::resolve({1, r, s, c, t, ep, etp}, 8));
      }
  return layouts;
}

TEST(Placement, EveryElementIsCountedOnce) {
  const std::vector<model::ParamSpec> specs{
      spec_of(Kind::column, {16, 6}),       spec_of(Kind::row, {6, 16}),
      spec_of(Kind::vocabulary, {24, 3}),   spec_of(Kind::replicated, {5}),
      spec_of(Kind::shared, {7}),           spec_of(Kind::column, {8, 3}, 2),
      spec_of(Kind::expert, {8, 6, 2}),     spec_of(Kind::expert_column, {8, 16, 2}),
      spec_of(Kind::expert_row, {8, 3, 16})};
  for (const mesh::Layout& layout : layouts_of_eight())
    for (const model::ParamSpec& spec : specs) {
      const auto elements = static_cast<std::size_t>(element_count(spec.global_shape));
      std::vector<int> counted(elements, 0), held(elements, 0);
      int replicas = 0;
      for (const mesh::Rank rank : layout.ranks()) {
        const Placement placed = place(spec, layout, rank);
        const TensorSlice box = placed.slice(spec, "", DType::f32);
        mark(held, box);
        if (placed.counted()) mark(counted, box);
        replicas = placed.replicas;
      }
      EXPECT_EQ(counted, std::vector<int>(elements, 1)) << layout.to_string();
      EXPECT_EQ(held, std::vector<int>(elements, replicas)) << layout.to_string();
    }
}

TEST(Placement, DegreesDivideWhatTheyCut) {
  const mesh::Layout layout = layout_of({1, 1, 1, 1, 3});
  EXPECT_THROW(place(spec_of(Kind::column, {8, 6}), layout, mesh::Rank(0)), ContractViolation);
  EXPECT_THROW(place(spec_of(Kind::column, {6, 6}, 2), layout, mesh::Rank(0)), ContractViolation);
}

}  // namespace
}  // namespace tessera::plan
