// SPDX-License-Identifier: Apache-2.0
// A failure of one rank is the failure of all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>

#include "mpi/checkpoint/reshard.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
