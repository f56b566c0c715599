// SPDX-License-Identifier: Apache-2.0
// Communicators that must not come to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SimMembers, TwoRanksOnOneDevice) {
  const ncclUniqueId id = new_id();
  on_devices(2, [&](int rank) {
    cudaSetDevice(0);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclInvalidUsage);
    EXPECT_EQ(comm, nullptr);
    EXPECT_THAT(last_error(),
                AllOf(HasSubstr("Duplicate GPU detected : rank "), HasSubstr("on CUDA device 0")));
  });
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  const ncclUniqueId shared = new_id();
  on_devices(2, [&](int rank) {
    cudaSetDevice(0);
    ncclComm_t comm = join(shared, 2, rank);
    meet();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

TEST(SimMembers, MembersThatDisagreeOnTheirNumber) {
  const ncclUniqueId id = new_id();
  on_devices(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2 + rank, id, rank), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("was told that there are"));
  });
}

TEST(SimMembers, AnIdServesOnce) {
  const ncclUniqueId id = new_id();
  ncclComm_t comm = join(id, 1, 0), again = nullptr;
  EXPECT_EQ(ncclCommInitRank(&again, 1, id, 0), ncclSystemError);
  EXPECT_THAT(last_error(), HasSubstr("all its ranks had joined already"));
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  ncclUniqueId none{};
  EXPECT_EQ(ncclCommInitRank(&comm, 1, none, 0), ncclSystemError);
  EXPECT_THAT(last_error(), HasSubstr("was not made by ncclGetUniqueId"));
}

TEST(SimMembers, ConfigurationsAndRanks) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config{};
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 1, new_id(), 1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 100, new_id(), 0), ncclInvalidUsage);
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, new_id(), 0), ncclInvalidArgument);
}

}  // namespace
}  // namespace tessera::sim::nccl::test
