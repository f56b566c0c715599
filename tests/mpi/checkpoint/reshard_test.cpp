// SPDX-License-Identifier: Apache-2.0
// Saved by ranks that hold boxes of one cut, loaded by ranks that want boxes of another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>

#include "mpi/checkpoint/reshard.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "unit/checkpoint/sample.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<Cut> cuts_of(int ranks) {
  std::vector<Cut> cuts;
  for (int rows = 1; rows <= ranks; ++rows)
    for (int columns = 1; rows * columns <= ranks; ++columns)
      if (ranks % (rows * columns) == 0) cuts.push_back({rows, columns, ranks / (rows * columns)});
  return cuts;
}

constexpr FileLayout kLayouts[] = {FileLayout::rank, FileLayout::node, FileLayout::single};

TEST_F(Reshard, EveryCutLoadsEveryOther) {
  std::int64_t step = 0;
  for (const Cut& saved : cuts_of(ranks())) {
    files_ = kLayouts[step % 3];
    const CheckpointReader opened = open(control(), save_cut(saved, ++step));
    if (rank() == 0) {
      EXPECT_EQ(describe(verify(opened.folder(), true)), "");
    }
    for (const Cut& wanted : cuts_of(ranks())) EXPECT_TRUE(loads(opened, wanted));
    for (const Cut& wanted : {Cut{1, 1}, Cut{4, 2}, Cut{3, 5}}) EXPECT_TRUE(loads(opened, wanted));
  }
}

TEST_F(Reshard, TensorsOfManyBlocksToo) {
  const Cut saved = cuts_of(ranks()).back(), replicated{1, 1, ranks()};
  std::int64_t step = 0;
  for (const Cut& cut : {saved, replicated})
    for (const FileLayout files : kLayouts) {
      files_ = files;
      const CheckpointReader opened = open(control(), save_cut(cut, ++step, true));
      EXPECT_TRUE(loads(opened, {1, ranks()}, true));
      EXPECT_TRUE(loads(opened, {ranks(), 1}, true));
      if (rank() == 0) {
        EXPECT_EQ(describe(verify(opened.folder(), true)), "");
      }
    }
}

TEST_F(Reshard, FilesAreThoseOfRanksNodesOrTheJob) {
  std::int64_t step = 0;
  for (const FileLayout files : kLayouts) {
    files_ = files;
    const fs::path saved = save_cut({1, 1, ranks()}, ++step, true);
    std::set<std::string> expected;
    for (int r = 0; r < ranks(); ++r)
      expected.insert(files == FileLayout::rank   ? fmt::format("shard-pp0.r0.s{}.cp0.tp0.h5", r)
                      : files == FileLayout::node ? fmt::format("shard-node{}.h5", (r + 1) / 2)
                                                  : "shard-all.h5");
    EXPECT_EQ(shards_of(saved), std::vector<std::string>(expected.begin(), expected.end()));
  }
}

TEST_F(Reshard, WithoutNamesTheRanksOfThisMachineAreANode) {
  SaveOptions with = options();
  with.files = FileLayout::node;
  with.node.clear();
  const auto held = hold(sample_tensors(), {ranks(), 1}, rank(), true);
  EXPECT_EQ(shards_of(save(control(), with, {1}, views_of(held)).folder),
            (std::vector<std::string>{"shard-node0.h5"}));
}

/// Attributes of so many dimensions outgrow the front of the file: structure and small boxes share
/// pages.
TEST_F(Reshard, TheStructureOfASharedFileLeavesItsBoxesAlone) {
  files_ = FileLayout::single;
  std::vector<SampleTensor> tensors;
  for (int i = 0; i < 60; ++i) {
    Shape shape(30, 1);
    shape.front() = 3 * ranks();
    tensors.push_back({fmt::format("model/layers.{}.weight", i), DType::f32, shape});
  }
  const auto held = hold(tensors, {ranks(), 1}, rank(), true);
  const auto opened = open(control(), save(control(), options(), {1}, views_of(held)).folder);
  const auto blank = hold(tensors, {1, 1}, 0, false);
  load(control(), opened, views_of(blank));
  EXPECT_TRUE(all_right(blank));
}

TEST_F(Reshard, ADamagedByteOfASharedFileIsFoundWhereverItLies) {
  files_ = FileLayout::single;
  const fs::path shard = save_cut({ranks(), 1}, 1) / "shard-all.h5";
  if (rank() != 0) return;
  const std::string good = content_of(shard);
  for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 500) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    put(shard, bad);
    EXPECT_NE(describe(verify(shard.parent_path(), true)), "") << "byte " << at;
  }
}

TEST_F(Reshard, ReplicasWriteEachByteOnce) {
  const fs::path step = save_cut({1, 1, ranks()}, 1, true);
  control().barrier();
  std::uintmax_t largest = 0, all = 0;
  for (const auto& entry : fs::directory_iterator(step)) {
    if (!entry.path().filename().string().starts_with("shard-")) continue;
    largest = std::max(largest, entry.file_size());
    all += entry.file_size();
  }
  EXPECT_LT(all, 9'500'000u);
  EXPECT_LT(largest, 9'000'000u / static_cast<unsigned>(ranks()) + 500'000u);
}

}  // namespace
}  // namespace tessera::checkpoint
