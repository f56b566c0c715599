// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/microbatch_trial.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tessera::train {
namespace {

/// Runs a trial against sizes that take so long; the first step of each takes ten times that.
std::int64_t chosen(std::map<std::int64_t, double> seconds, std::int64_t largest_that_fits = 1000) {
  std::vector<std::int64_t> sizes;
  for (const auto& [rows, time] : seconds) sizes.push_back(rows);
  MicrobatchTrial trial(sizes);
  std::map<std::int64_t, int> steps;
  while (!trial.done()) {
    const std::int64_t rows = trial.rows();
    EXPECT_LE(rows, largest_that_fits);
    trial.took(seconds[rows] * (steps[rows]++ == 0 ? 10 : 1),
               trial.next_rows() <= largest_that_fits);
  }
  for (const auto& [rows, count] : steps) EXPECT_EQ(count, 3) << rows;
  return trial.rows();
}

TEST(MicrobatchTrial, KeepsTheFastest) {
  EXPECT_EQ(chosen({{1, 3.0}, {2, 2.0}, {4, 2.5}}), 2);
  EXPECT_EQ(chosen({{1, 3.0}, {2, 2.0}, {4, 1.5}}), 4);
  EXPECT_EQ(chosen({{8, 1.0}}), 8);
}

TEST(MicrobatchTrial, LeavesOutWhatMemoryDoesNotHold) {
  EXPECT_EQ(chosen({{1, 3.0}, {2, 2.0}, {4, 1.0}}, 2), 2);
}

}  // namespace
}  // namespace tessera::train
