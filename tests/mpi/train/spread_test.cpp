// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/spread.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace tessera::test {
namespace {

std::set<std::string> words_of(const std::vector<GradientCase>& rows) {
  std::set<std::string> words;
  for (const GradientCase& row : rows) {
    std::istringstream name(row.name());
    for (std::string word; name >> word;) words.insert(word);
  }
  return words;
}

/// Rows of two degrees, three policies and two kinds of weights.
std::vector<GradientCase> twelve_rows() {
  std::vector<GradientCase> rows;
  for (const int tp : {1, 2})
    for (const char* reshard : {"default", "always", "never"})
      for (const bool tied : {false, true}) {
        GradientCase& row = rows.emplace_back();
        row.tp = tp;
        row.reshard = reshard;
        row.tied = tied;
      }
  return rows;
}

TEST(Rows, MeetsEachPropertyHoweverFewRowsAreAskedFor) {
  const std::vector<GradientCase> rows = all_cases(8);
  const std::vector<GradientCase> some = spread_of(rows, 1).rows;
  EXPECT_EQ(words_of(some), words_of(rows));
  EXPECT_LT(some.size(), rows.size() / 10);
}

TEST(Rows, MeetsAllPairsInFewRows) {
  const Spread spread = spread_of(twelve_rows(), 8);
  EXPECT_LE(spread.rows.size(), 8U);
  EXPECT_EQ(spread.pairs, spread.all_pairs);
}

TEST(Rows, LacksOfWordsAreProperties) {
  std::vector<GradientCase> rows(2);
  rows[0].tied = true;
  EXPECT_EQ(spread_of(rows, 1).rows.size(), 2U);  // a row that is not tied, too
}

TEST(Rows, TakesAllRowsInTheirOrder) {
  const std::vector<GradientCase> rows = twelve_rows();
  const std::vector<GradientCase> all = spread_of(rows, rows.size()).rows;
  ASSERT_EQ(all.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(all[i].name(), rows[i].name());
  EXPECT_TRUE(spread_of({}, 3).rows.empty());
}

}  // namespace
}  // namespace tessera::test
