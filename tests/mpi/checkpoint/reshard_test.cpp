// SPDX-License-Identifier: Apache-2.0
// Saved by ranks that hold boxes of one cut, loaded by ranks that want boxes of another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>

#include "mpi/checkpoint/on_ranks.hpp"
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

class Reshard : public OnRanks {
 protected:
  /// Two ranks pretend to be a node, but for the first and the last one.
  SaveOptions options() const {
    SaveOptions options = OnRanks::options();
    options.node = fmt::format("node {}", (rank() + 1) / 2);
    return options;
  }
  fs::path save_cut(const Cut& cut, std::int64_t step, bool large = false) {
    const auto held = hold(sample_tensors(large), cut, rank(), true);
    return save(control(), options(), {step}, views_of(held)).folder;
  }
  bool loads(const CheckpointReader& opened, const Cut& cut, bool large = false) {
    const auto held = hold(sample_tensors(large), cut, rank() % cut.ranks(), false);
    load(control(), opened, views_of(held));
    return all_right(held);
  }
  /// The message that every rank threw; a failure when ranks differ.
  static std::string common_message(const std::function<void()>& work, ExitCode code) {
    std::string message = "nothing was thrown";
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      message = error.what();
    }
    for (const std::string& other : comm::all_gather_strings(control(), message))
      EXPECT_EQ(other, message);
    return message;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::vector<std::string> shards_of(const fs::path& step) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(step))
      if (entry.path().filename().string().starts_with("shard-"))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

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

TEST_F(Reshard, AFullDiskUnderASharedFileIsNamedOnEveryRank) {
  std::signal(SIGXFSZ, SIG_IGN);
  files_ = FileLayout::single;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto held = hold(sample_tensors(true), {1, 1, ranks()}, rank(), true);
  if (rank() == ranks() - 1) {
    const rlimit small{300'000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  const std::string message = common_message(
      [&] { save(control(), options(), {1}, views_of(held)); }, ExitCode::checkpoint);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, HasSubstr("shard-all.h5"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Reshard, OneRanksFailureIsEveryRanksError) {
  const fs::path good = save_cut({ranks(), 1}, 1);
  const int failing = ranks() - 1;
  SaveOptions with = options();
  with.on_stage = [&](SaveStage stage) {
    if (stage == SaveStage::written && rank() == failing)
      fail(ExitCode::environment, "the disk of rank {} broke", failing);
  };
  const auto held = hold(sample_tensors(), {ranks(), 1}, rank(), true);
  EXPECT_THAT(
      common_message([&] { save(control(), with, {2}, views_of(held)); }, ExitCode::environment),
      HasSubstr(fmt::format("the disk of rank {} broke", failing)));
  EXPECT_EQ(entries(), 2u);  // LATEST and step 1
  EXPECT_EQ(open_newest(control(), folder_, {})->folder(), good);
}

TEST_F(Reshard, AFileThatCannotGrowIsNamedOnEveryRank) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const int failing = ranks() / 2;
  const auto held = hold(sample_tensors(true), {1, 1, ranks()}, rank(), true);
  if (rank() == failing) {
    const rlimit small{300'000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  const std::string message = common_message(
      [&] { save(control(), options(), {1}, views_of(held)); }, ExitCode::checkpoint);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, HasSubstr(fmt::format("shard-pp0.r0.s{}.cp0.tp0.h5", failing)));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Reshard, DamageThatOneRankSeesIsEveryRanksError) {
  const fs::path step = save_cut({ranks(), 1}, 1);
  // A middle rank (the last ones may hold no rows), and bytes all over its file: some lie between
  // boxes, where no load looks.
  const std::string name = fmt::format("shard-pp0.r0.s{}.cp0.tp0.h5", (ranks() - 1) / 2);
  if (rank() == 0 && fs::exists(step / name)) {
    std::string bytes = content_of(step / name);
    for (std::size_t i = 63; i < bytes.size(); i += 64) bytes[i] = static_cast<char>(bytes[i] ^ 1);
    put(step / name, bytes);
  }
  control().barrier();
  if (!fs::exists(step / name)) return;
  const CheckpointReader opened = open(control(), step);
  EXPECT_THAT(common_message(
                  [&] {
                    loads(opened, {ranks(), 1});
                  },
                  ExitCode::checkpoint),
              HasSubstr(name));
  EXPECT_THAT(common_message(
                  [&] {
                    const auto held = hold(sample_tensors(), {ranks(), 1}, rank(), false);
                    load_newest(control(), folder_, views_of(held));
                  },
                  ExitCode::checkpoint),
              HasSubstr("no checkpoint in"));
  EXPECT_FALSE(
      save(control(), options(), {1}, views_of(hold(sample_tensors(), {ranks(), 1}, rank(), true)))
          .kept_existing);
  EXPECT_TRUE(loads(*open_newest(control(), folder_, {}), {ranks(), 1}));
  EXPECT_TRUE(
      save(control(), options(), {1}, views_of(hold(sample_tensors(), {ranks(), 1}, rank(), true)))
          .kept_existing);
}

TEST_F(Reshard, AllRanksGoOnToTheOlderOneThatIsWhole) {
  for (const int step : {1, 2, 3, 4}) save_cut({ranks(), 1}, step);
  if (rank() == 0) {
    for (const int step : {3, 4}) {  // one at its end, one where only rank 0's rows are
      const fs::path shard = folder_ / fmt::format("step-{:08}/shard-pp0.r0.s0.cp0.tp0.h5", step);
      std::string bytes = content_of(shard);
      if (step == 4) bytes.resize(bytes.size() - 1);
      if (step == 3)
        for (std::size_t i = 63; i < bytes.size(); i += 64)
          bytes[i] = static_cast<char>(bytes[i] ^ 1);
      put(shard, bytes);
    }
    fs::rename(folder_ / "step-00000002", folder_ / "step-00000005");
  }
  control().barrier();
  const auto held = hold(sample_tensors(), {ranks(), 1}, rank(), false);
  std::vector<std::string> lines;
  LoadOptions options;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  const auto opened = load_newest(control(), folder_, views_of(held), options);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->step(), 1);
  EXPECT_TRUE(all_right(held));
  if (rank() != 0) {
    EXPECT_TRUE(lines.empty());
    return;
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("step-00000005: "));
  EXPECT_THAT(lines[0], HasSubstr("it is of step 2"));
  EXPECT_THAT(lines[1], HasSubstr("step-00000004: "));
  EXPECT_THAT(lines[2], HasSubstr("step-00000003: "));
  EXPECT_THAT(lines[2], HasSubstr("shard-pp0.r0.s0.cp0.tp0.h5"));
}

TEST_F(Reshard, ContradictionsBetweenRanksAreFound) {
  if (ranks() == 1) return;
  float value = 0;
  const SliceView view{{"model/w", DType::f32, {ranks() + (rank() == 1)}, {{rank()}, {1}}}, &value};
  EXPECT_THAT(common_message(
                  [&] {
                    save(control(), options(), {1}, {&view, 1});
                  },
                  ExitCode::usage),
              HasSubstr("tensor model/w is f32"));
  const SliceView missing{{"model/w", DType::f32, {ranks()}, {{rank() / 2}, {rank() < 2 ? 1 : 0}}},
                          &value};
  if (ranks() > 2) {
    EXPECT_THAT(common_message(
                    [&] {
                      save(control(), options(), {1}, {&missing, 1});
                    },
                    ExitCode::usage),
                HasSubstr(fmt::format("hold 2 elements where {} were expected", ranks())));
  }
  SaveOptions same = options();
  same.coord_name = "pp0.r0.s0.cp0.tp0";
  const SliceView mine{{"model/w", DType::f32, {ranks()}, {{rank()}, {1}}}, &value};
  EXPECT_THAT(common_message(
                  [&] {
                    save(control(), same, {1}, {&mine, 1});
                  },
                  ExitCode::checkpoint),
              HasSubstr("File exists"));
}

}  // namespace
}  // namespace tessera::checkpoint
