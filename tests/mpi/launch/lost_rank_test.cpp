// SPDX-License-Identifier: Apache-2.0
#include "lost_rank.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace tessera::app {
namespace {

using comm::RankRecord;
using tessera::test::TemporaryFolder;

TEST(LostRank, IsTheOneThatNobodyAskedToEnd) {
  EXPECT_EQ(how_a_rank_was_lost(SIGSEGV, {{0, 17, 15, true, false}, {1, 17, 15, false, false}}),
            "rank 1 was ended by signal 11 (segmentation fault) after step 17; run the same "
            "command to resume (latest "
            "checkpoint: step 15)");
}

TEST(LostRank, WithoutACheckpointTheRunStartsAnew) {
  EXPECT_EQ(how_a_rank_was_lost(SIGSEGV, {{0, 17, -1, true, false}, {1, 17, -1, false, false}}),
            "rank 1 was ended by signal 11 (segmentation fault) after step 17; no checkpoint was "
            "saved: the same "
            "command starts from step 1");
}

TEST(LostRank, NamesNobodyWithoutProof) {
  const char* killed =
      "a rank was ended by signal 9 (killed). The kernel kills processes when memory runs out: see "
      "`dmesg`";
  EXPECT_EQ(how_a_rank_was_lost(SIGKILL, {}), killed);
  EXPECT_EQ(how_a_rank_was_lost(SIGKILL, {{0, 0, -1, false, false}, {1, 0, -1, false, false}}),
            killed);
}

TEST(LostRank, RanksThatChoseTheirCodeAreNotLost) {
  EXPECT_EQ(how_a_rank_was_lost(SIGTERM, {{0, 3, -1, true, true}, {1, 3, -1, true, true}}), "");
}

TEST(RankRecord, OutlivesItsProcess) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    setenv(comm::kRankRecordsVariable, folder.path().c_str(), 1);
    comm::rank_record::begin(3);
    comm::rank_record::note_step(17);
    comm::rank_record::note_saved(15);
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const auto records = comm::read_rank_records(folder.path());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].rank, 3);
  EXPECT_EQ(records[0].step, 17);
  EXPECT_EQ(records[0].saved_step, 15);
  EXPECT_FALSE(records[0].asked_to_end || records[0].ended);
  EXPECT_EQ(records[0].code, -1);
}

}  // namespace
}  // namespace tessera::app
