// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::schedule {
namespace {

using tessera::test::error_if_any;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

class ScheduleCsv : public testing::Test {
 protected:
  Table read(const std::string& text) {
    put(file_, text);
    return read_csv(file_);
  }
  std::string refusal(const std::string& text) {
    std::string fault;
    const std::string error = error_if_any(ExitCode::usage, [&] {
      const Table table = read(text);
      fault =
          find_fault(with_transfers(table.computations, table.map), table.map, table.microbatches);
    });
    return error + fault;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "x.csv";
};

TEST_F(ScheduleCsv, EveryScheduleComesBack) {
  for (const Traits& schedule : all_traits()) {
    const auto map = schedule.usual_map(3);
    const ActionLists lists = compute_orders(schedule.kind, map, 6);
    const Table table = read(to_csv(simulate(lists, map)));
    EXPECT_EQ(table.computations, lists) << schedule.name;
    EXPECT_EQ(table.map, map);
    EXPECT_EQ(table.microbatches, 6);
  }
}

TEST_F(ScheduleCsv, WaitingIsAnEmptyCell) {
  const auto map = StageMap::loop(2);
  EXPECT_EQ(to_csv(simulate(compute_orders(Kind::gpipe, map, 1), map)), "0F0,,,,0B0\n,1F0,1B0\n");
}

TEST_F(ScheduleCsv, TakesSpacesPairsAndWindowsLines) {
  const Table table = read("0F0, 1F0 ,,(1I0;1W0)OVERLAP_F_B\r\n\r\n");
  ASSERT_EQ(table.computations.size(), 1);
  const ActionList& list = table.computations[PipelineRank(0)];
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(to_string(list[3]), "1W0");
}

TEST_F(ScheduleCsv, KeepsPairsOfAForwardAndABackward) {
  const StageMap map = StageMap::v(2);
  const ActionLists lists = compute_orders(Kind::dual_pipe_v, map, 6, Pairs::together);
  const std::string text = to_csv(simulate(lists, map));
  EXPECT_THAT(text, HasSubstr("(0F3;3B1)OVERLAP_F_B"));
  const Table table = read(text);
  EXPECT_EQ(table.computations, lists);
  for (const char* apart : {"0F0,0F1,(0F2;0B0)OVERLAP_F_B", "0F0,0F1,(0B0;1F0)OVERLAP_F_B"})
    for (const ActionList& list : read(apart).computations)
      for (const Action& action : list) EXPECT_FALSE(action.overlaps_next) << apart;
}

TEST_F(ScheduleCsv, SaysWhereItIsWrong) {
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1X0\n"), HasSubstr(":2:2: \"1X0\" is not an action"));
  EXPECT_THAT(refusal("0F0,,0SEND_F0\n"), HasSubstr(":1:3: \"0SEND_F0\" is not a computation"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,0B1\n"),
              HasSubstr(":2:2: \"0B1\" has a stage that is also in row 1"));
  EXPECT_THAT(refusal("0F0,0B0\n2F0,2B0\n"), HasSubstr("stage 1 has no action"));
  EXPECT_THAT(refusal("0F0,0B0\n,,\n"), HasSubstr(":2: the row has no action"));
  EXPECT_THAT(refusal("\n"), HasSubstr("holds no actions"));
}

TEST_F(ScheduleCsv, LongCellsNeedNoStackAndNoLongMessage) {
  for (const std::string& cell :
       {std::string(500'000, '7'), "(" + std::string(500'000, 'x') + ")OVERLAP_F_B",
        std::string(500'000, '1') + "SEND_F" + std::string(500'000, '2'),
        std::string(100'000, '(') + "0F0"}) {
    const std::string message = refusal("0F0," + cell + ",0B0\n");
    EXPECT_THAT(message, HasSubstr(":1:2:"));
    EXPECT_LT(message.size(), 400u);
  }
}

TEST_F(ScheduleCsv, WhatWouldNeverEndIsRefused) {
  EXPECT_THAT(refusal("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"),
              HasSubstr("deadlocks: rank 0 at 0B0, rank 1 at 1F1"));
  EXPECT_THAT(refusal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"), HasSubstr("deadlocks"));
  EXPECT_THAT(refusal("0F0,0I0,0F1,0I1,0W0\n"), HasSubstr("never done: 0W1"));
  EXPECT_THAT(refusal("0F0,0F0,0B0\n"), HasSubstr("done before"));
  EXPECT_THROW(read_csv("/nowhere/schedule.csv"), Error);
}

TEST(TimelineSvg, HasABoxForEachAction) {
  const auto map = StageMap::v(2);
  const Timeline timeline = simulate(compute_orders(Kind::zbv, map, 4), map);
  const std::string svg = to_svg(timeline, map, "ZBV");
  std::size_t boxes = 0;
  for (std::size_t at = svg.find("<title>"); at != svg.npos; at = svg.find("<title>", at + 1))
    ++boxes;
  EXPECT_EQ(boxes, 2u * 2 * 4 * 3);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, HasSubstr("<title>3I2</title>"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace tessera::schedule
