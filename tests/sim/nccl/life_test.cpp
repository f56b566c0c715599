// SPDX-License-Identifier: Apache-2.0
// How communicators begin, fail and end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

using testing::HasSubstr;

void wait_until_ready(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
}

TEST(SimLife, SaysWhoItIs) {
  on_ranks(3, [](Rank& me) {
    int size = 0, rank = 0, device = 0, version = 0;
    EXPECT_EQ(ncclCommCount(me.comm, &size), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(me.comm, &rank), ncclSuccess);
    EXPECT_EQ(ncclCommCuDevice(me.comm, &device), ncclSuccess);
    EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
    EXPECT_EQ(std::vector({size, rank, device, version}),
              std::vector({3, me.rank, me.rank, 22809}));
    EXPECT_STREQ(ncclGetErrorString(ncclInvalidUsage), "invalid usage");
  });
}

/// Split by parity, in reverse order, and rank 3 in none.
TEST(SimLife, Split) {
  on_ranks(4, [](Rank& me) {
    ncclComm_t half =
        split(me.comm, me.rank == 3 ? NCCL_SPLIT_NOCOLOR : me.rank % 2, -me.rank, "half");
    EXPECT_EQ(half == nullptr, me.rank == 3);
    if (half) {
      int size = 0, rank = 0;
      ncclCommCount(half, &size);
      ncclCommUserRank(half, &rank);
      EXPECT_EQ(size, me.rank == 1 ? 1 : 2);
      EXPECT_EQ(rank, me.rank == 0 ? 1 : 0);
      Array<int> x(3, me.rank), all(6, -1);
      EXPECT_EQ(ncclAllGather(x.data(), all.data(), 3, ncclInt, half, me.stream), ncclSuccess);
      me.finish();
      if (size == 2) {
        EXPECT_EQ(all.values(), (std::vector{2, 2, 2, 0, 0, 0}));
      }
      EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
    }
  });
}

TEST(SimLife, ScalableInitialisation) {
  std::vector<ncclUniqueId> ids{new_id(), new_id()};
  on_devices(3, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankScalable(&comm, 3, rank, 2, ids.data(), nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 2, ids.data(), nullptr), ncclInvalidArgument);
  });
  ids = {new_id(), new_id()};
  on_devices(2, [&](int rank) {
    std::vector<ncclUniqueId> mine{ids[0], rank == 0 ? ids[0] : ids[1]};
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, rank, 2, mine.data(), nullptr), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("were given different lists of unique ids"));
  });
  const ncclUniqueId used = new_id();
  on_devices(1, [&](int rank) { EXPECT_EQ(ncclCommDestroy(join(used, 1, rank)), ncclSuccess); });
  ids = {new_id(), used};
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 1, 2, ids.data(), nullptr),
            ncclSystemError);  // which meets at `used`
  EXPECT_THAT(last_error(), HasSubstr("no communicator begins at this unique id"));
}

/// Calls return at once and are done when the asynchronous error says so; until then nothing else
/// is allowed.
TEST(SimLife, NonBlocking) {
  const ncclUniqueId id = new_id();
  on_devices(2, [&](int rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr, part = nullptr;
    if (rank == 1) meet();
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInProgress);
    if (rank == 0) {
      EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclInvalidArgument);
      EXPECT_THAT(last_error(), HasSubstr("is not ready"));
      meet();
    }
    wait_until_ready(comm);
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclInProgress);
    wait_until_ready(comm);
    EXPECT_NE(part, nullptr);
    EXPECT_EQ(ncclCommFinalize(part), ncclInProgress);
    wait_until_ready(part);
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

/// The rank whose peer never joins may give up.
TEST(SimLife, AbortOfAnInitialisation) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, new_id(), 0, &config), ncclInProgress);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

/// Nothing is buffered: a send waits for its receive. Abort is local, and leaves NaN in what was to
/// be received.
TEST(SimLife, AbortEndsWhatWaits) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(10, 1.0f);
    if (me.rank == 1) {
      ncclRecv(x.data(), 10, ncclFloat, 0, me.comm, me.stream);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_EQ(cudaStreamQuery(me.stream), cudaErrorNotReady);
      EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
      me.comm = nullptr;
      me.finish();
      EXPECT_TRUE(x.values()[9] != x.values()[9]);
    }
    meet();
    if (me.rank == 0) {
      ncclResult_t state = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(me.comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclSuccess);  // the peer knows nothing of it
      ncclCommAbort(me.comm);
      me.comm = nullptr;
    }
  });
}

/// The other direction: what is sent is not kept anywhere for a receiver that comes later.
TEST(SimLife, SendWaitsForItsReceive) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(10, 1.0f);
    if (me.rank == 0) {
      ncclSend(x.data(), 10, ncclFloat, 1, me.comm, me.stream);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_EQ(cudaStreamQuery(me.stream), cudaErrorNotReady);
    }
    meet();
    if (me.rank == 1) ncclRecv(x.data(), 10, ncclFloat, 0, me.comm, me.stream);
    me.finish();
  });
}

/// As NCCL frees memory, an abort waits for the whole device: for an operation of another
/// communicator, too, whose peer does not come. Aborts of one group do not wait for each other.
TEST(SimLife, AbortWaitsForTheDevice) {
  on_ranks(2, [](Rank& me) {
    ncclComm_t other = split(me.comm, 0, me.rank, "other");
    Array<float> x(10, 1.0f);
    if (me.rank == 0) {
      ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, other, me.stream);
      std::atomic<bool> done = false;
      std::thread aborts([&] {
        cudaSetDevice(me.rank);
        ncclCommAbort(me.comm);
        done = true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_FALSE(done);
      ncclCommAbort(other);
      aborts.join();
      me.comm = nullptr;
    }
    meet();
    if (me.rank == 1) {
      ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, other, me.stream);
      ncclGroupStart();
      EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(other), ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      me.comm = nullptr;
    }
  });
}

TEST(SimLife, FinalizeWaitsForOperations) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(10, 1.0f);
    static std::atomic<bool> late;
    if (me.rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      late = true;
    }
    ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, me.comm, me.stream);
    EXPECT_EQ(ncclCommFinalize(me.comm), ncclSuccess);
    EXPECT_TRUE(late);
  });
}

TEST(SimLife, InjectedFailureOfACall) {
  on_ranks(1, [](Rank& me) {
    setenv("TESSERA_SIM_NCCL_FAIL", "ncclCommSplit:2", 1);
    ncclComm_t a = nullptr, b = nullptr;
    EXPECT_EQ(ncclCommSplit(me.comm, 0, 0, &a, nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(me.comm, 0, 0, &b, nullptr), ncclSystemError);
    EXPECT_EQ(last_error(), "ncclCommSplit: injected failure");
    EXPECT_EQ(ncclCommSplit(me.comm, 0, 0, &b, nullptr), ncclSuccess);
    unsetenv("TESSERA_SIM_NCCL_FAIL");
    EXPECT_EQ(ncclCommDestroy(a), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(b), ncclSuccess);
  });
}

TEST(SimLife, InjectedRemoteError) {
  setenv("TESSERA_SIM_NCCL_FAIL", "async:2", 1);
  on_ranks(1, [](Rank& me) {
    Array<float> x(10, 1.0f);
    const auto call = [&] {
      return ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, me.comm, me.stream);
    };
    EXPECT_EQ(call(), ncclSuccess);
    me.finish();
    EXPECT_EQ(call(), ncclSuccess);
    EXPECT_EQ(failure_of(me.comm), ncclRemoteError);
    EXPECT_EQ(call(), ncclRemoteError);
    EXPECT_THAT(last_error(), HasSubstr("has failed before: remote process exited"));
    EXPECT_EQ(ncclCommAbort(me.comm),
              ncclSuccess);  // before the memory goes, which waits for the operation
    me.comm = nullptr;
  });
  unsetenv("TESSERA_SIM_NCCL_FAIL");
}

/// NCCL reads the name where it lies, whenever it needs it.
TEST(SimLife, KeepsThePointerToItsName) {
  char name[] = "before";
  ncclComm_t comm = join(new_id(), 1, 0, name);
  std::copy_n("behind", 6, name);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("communicator behind was destroyed"));
}

}  // namespace
}  // namespace tessera::sim::nccl::test
