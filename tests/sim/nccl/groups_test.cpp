// SPDX-License-Identifier: Apache-2.0
// Transfers, groups, and what of them progresses together.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

/// Everybody sends before receiving: within a group nobody waits for the order of calls.
TEST(SimGroups, Ring) {
  on_ranks(4, [](Rank& me) {
    const int next = (me.rank + 1) % me.size, previous = (me.rank + me.size - 1) % me.size;
    Array<int> out(5000, me.rank), in(5000, -1);
    ncclGroupStart();
    EXPECT_EQ(ncclSend(out.data(), 5000, ncclInt, next, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(in.data(), 5000, ncclInt, previous, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    me.finish();
    EXPECT_EQ(in.values(), std::vector<int>(5000, previous));
  });
}

TEST(SimGroups, TransfersOfAPairMatchInTheOrderOfCalls) {
  on_ranks(2, [](Rank& me) {
    Array<int> a(7, 10 + me.rank), b(9, 20 + me.rank), c(7, -1), d(9, -1);
    const int peer = 1 - me.rank;
    ncclGroupStart();
    ncclRecv(c.data(), 7, ncclInt, peer, me.comm, me.stream);
    ncclSend(a.data(), 7, ncclInt, peer, me.comm, me.stream);
    ncclSend(b.data(), 9, ncclInt, peer, me.comm, me.stream);
    ncclRecv(d.data(), 9, ncclInt, peer, me.comm, me.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    me.finish();
    EXPECT_EQ(c.values()[6], 10 + peer);
    EXPECT_EQ(d.values()[8], 20 + peer);
  });
}

TEST(SimGroups, ToItself) {
  on_ranks(2, [](Rank& me) {
    Array<int> a(3, me.rank), b(3, -1);
    ncclGroupStart();
    ncclSend(a.data(), 3, ncclInt, me.rank, me.comm, me.stream);
    ncclRecv(b.data(), 3, ncclInt, me.rank, me.comm, me.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    me.finish();
    EXPECT_EQ(b.values(), a.values());
  });
}

/// Without groups a send and its receive still match, and empty ones too.
TEST(SimGroups, Ungrouped) {
  on_ranks(2, [](Rank& me) {
    Array<int> x(3, me.rank);
    for (const std::size_t count : {3u, 0u}) {
      if (me.rank == 0)
        ncclSend(x.data(), count, ncclInt, 1, me.comm, me.stream);
      else
        ncclRecv(x.data(), count, ncclInt, 0, me.comm, me.stream);
    }
    me.finish();
    EXPECT_EQ(x.values()[2], 0);
  });
}

TEST(SimGroups, NestAndHoldCollectivesToo) {
  on_ranks(3, [](Rank& me) {
    Array<int> sum(4, 1), out(4, me.rank), in(4, -1);
    ncclGroupStart();
    ncclGroupStart();
    ncclRecv(in.data(), 4, ncclInt, (me.rank + 1) % 3, me.comm, me.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    ncclAllReduce(sum.data(), sum.data(), 4, ncclInt, ncclSum, me.comm, me.stream);
    ncclSend(out.data(), 4, ncclInt, (me.rank + 2) % 3, me.comm, me.stream);
    EXPECT_EQ(cudaStreamQuery(me.stream), cudaSuccess);  // nothing is launched before the end
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    me.finish();
    EXPECT_EQ(sum.values()[3], 3);
    EXPECT_EQ(in.values()[0], (me.rank + 1) % 3);
  });
}

/// One thread launches for all devices, which only a group makes possible.
TEST(SimGroups, OneThreadWithAllRanks) {
  const int n = 3;
  const ncclUniqueId id = new_id();
  std::vector<ncclComm_t> comms(n);
  std::vector<std::unique_ptr<Array<int>>> x;
  ncclGroupStart();
  for (int r = 0; r < n; ++r) {
    cudaSetDevice(r);
    x.push_back(std::make_unique<Array<int>>(5, r + 1));
    EXPECT_EQ(ncclCommInitRank(&comms[static_cast<std::size_t>(r)], n, id, r), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  ncclGroupStart();
  for (std::size_t r = 0; r < comms.size(); ++r)
    EXPECT_EQ(ncclAllReduce(x[r]->data(), x[r]->data(), 5, ncclInt, ncclSum, comms[r], nullptr),
              ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  for (std::size_t r = 0; r < comms.size(); ++r) {
    cudaSetDevice(static_cast<int>(r));
    EXPECT_EQ(x[r]->values()[4], 6);
  }
  ncclGroupStart();
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  cudaSetDevice(0);
}

TEST(SimGroups, HoldSeveralCommunicators) {
  on_ranks(4, [](Rank& me) {
    ncclComm_t half = split(me.comm, me.rank / 2, me.rank, "half");
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    Array<int> a(10, 1), b(10, 1);
    ncclGroupStart();
    const auto on_all = [&] {
      ncclAllReduce(a.data(), a.data(), 10, ncclInt, ncclSum, me.comm, me.stream);
    };
    const auto on_half = [&] {
      ncclAllReduce(b.data(), b.data(), 10, ncclInt, ncclSum, half, other);
    };
    if (me.rank % 2) on_all();
    on_half();
    if (me.rank % 2 == 0) on_all();
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    me.finish();
    cudaStreamSynchronize(other);
    EXPECT_EQ(a.values()[9], 4);
    EXPECT_EQ(b.values()[9], 2);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
    cudaStreamDestroy(other);
  });
}

/// Streams of one group wait for each other before and after it: what follows on either sees both
/// results, and the checker of races knows that.
TEST(SimGroups, OrderTheirStreams) {
  on_ranks(2, [](Rank& me) {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    Array<int> a(10, 0), b(10, 0), c(10, 0);
    cudaMemsetAsync(a.data(), 1, 40, me.stream);
    cudaMemsetAsync(b.data(), 1, 40, other);
    ncclGroupStart();
    ncclAllReduce(a.data(), a.data(), 10, ncclInt, ncclMax, me.comm, me.stream);
    ncclAllReduce(b.data(), b.data(), 10, ncclInt, ncclMax, me.comm, other);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    cudaMemcpyAsync(c.data(), a.data(), 40, cudaMemcpyDeviceToDevice, other);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(c.values()[0], 0x01010101);
    me.finish();
    cudaStreamDestroy(other);
  });
}

TEST(SimGroups, LaunchNothingAfterAnError) {
  on_ranks(2, [](Rank& me) {
    Array<int> x(3, 5), y(3, -1);
    ncclGroupStart();
    ncclAllReduce(x.data(), y.data(), 3, ncclInt, ncclSum, me.comm, me.stream);
    EXPECT_EQ(ncclSend(nullptr, 3, ncclInt, 0, me.comm, me.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    me.finish();
    EXPECT_EQ(y.values()[0], -1);
    EXPECT_EQ(ncclAllReduce(x.data(), y.data(), 3, ncclInt, ncclSum, me.comm, me.stream),
              ncclSuccess);
    me.finish();
    EXPECT_EQ(y.values()[0], 10);
  });
}

TEST(SimGroups, EndNeedsStart) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(last_error(), "ncclGroupEnd without ncclGroupStart on this thread");
}

}  // namespace
}  // namespace tessera::sim::nccl::test
