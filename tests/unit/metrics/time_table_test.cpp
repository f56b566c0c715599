// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/time_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(TimeTable, HasARowForEachPart) {
  const std::vector<Times> ranks{{{"forward", 3}, {"waiting in tp", 1}, {"rest", 0}},
                                 {{"forward", 5}, {"waiting in tp", 1}, {"rest", 0}}};
  EXPECT_EQ(time_table(ranks),
            "  seconds of 2 ranks             min      mean       max    spread    share\n"
            "  forward                      3.000     4.000     5.000     2.000   80.0 %\n"
            "  waiting in tp                1.000     1.000     1.000     0.000   20.0 %\n");
}

TEST(TimeTable, OfALongRunOnOneRank) {
  const std::vector<Times> ranks{{{"forward", 4000}}};
  EXPECT_THAT(time_table(ranks), HasSubstr("seconds of 1 rank "));
  EXPECT_THAT(time_table(ranks), HasSubstr("4000.0    4000.0    4000.0"));
  EXPECT_EQ(time_table({}), "");
}

TEST(TimeTable, RowsThatSomeRanksLackStandWhereOthersHaveThem) {
  const std::vector<Times> ranks{{{"forward", 1}, {"rest", 1}},
                                 {{"forward", 1}, {"waiting in pp", 1}, {"rest", 1}}};
  const std::string text = time_table(ranks);
  EXPECT_THAT(text, HasSubstr("waiting in pp                0.000     0.500     1.000     1.000"));
  EXPECT_LT(text.find("waiting in pp"), text.find("rest"));
}

TEST(TimeTable, NotesNameLossesAndKeys) {
  const std::vector<TimeHint> hints{{"waiting in tp", "--some.key"}, {"data", "--other.key 2"}};
  const std::vector<Times> ranks{{{"forward", 80},
                                  {"waiting in tp", 7.2},
                                  {"waiting in pp", 3.1},
                                  {"data", 2.9},
                                  {"checkpoint", 6.8}}};
  EXPECT_EQ(time_notes(ranks, hints),
            "  note: 7.2 % of the run was lost waiting in tp; --some.key may win it back\n"
            "  note: 3.1 % of the run was lost waiting in pp\n"
            "  note: 6.8 % of the run was lost saving checkpoints\n");
}

TEST(TimeTable, TextTravels) {
  Times times{{"waiting in dp_shard+cp", 0.125}, {"rest", 1e-9}};
  add_seconds(times, "rest", 1);
  EXPECT_THAT(times_of(text_of(times)),
              ElementsAre(Pair("waiting in dp_shard+cp", 0.125), Pair("rest", 1 + 1e-9)));
}

}  // namespace
}  // namespace tessera::metrics
