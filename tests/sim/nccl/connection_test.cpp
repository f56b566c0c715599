// SPDX-License-Identifier: Apache-2.0
// The host waits where NCCL connects ranks, and nowhere else.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

using std::chrono::milliseconds;

class SimConnections : public testing::Test {
 protected:
  void SetUp() override { setenv("NCCL_RUNTIME_CONNECT", "1", 1); }
  void TearDown() override { setenv("NCCL_RUNTIME_CONNECT", "0", 1); }
};

/// Rank 0 calls first, rank 1 some time later; whether rank 0 had returned by then.
bool returns_alone(Rank& me, const std::function<void()>& call) {
  static std::atomic<bool> returned, alone;
  if (me.rank == 0) returned = false;
  meet();
  if (me.rank == 0) {
    call();
    returned = true;
  } else {
    std::this_thread::sleep_for(milliseconds(200));
    alone = returned.load();
    call();
  }
  meet();
  me.finish();
  return alone;
}

TEST_F(SimConnections, HoldTheFirstCollectiveOnly) {
  on_ranks(2, [](Rank& me) {
    Array<int> x(10, me.rank);
    const auto call = [&] {
      EXPECT_EQ(ncclAllReduce(x.data(), x.data(), 10, ncclInt, ncclSum, me.comm, me.stream),
                ncclSuccess);
    };
    EXPECT_FALSE(returns_alone(me, call));
    EXPECT_EQ(x.values()[9], 1);
    call();
    me.finish();
    EXPECT_EQ(x.values()[9], 2);
  });
}

TEST_F(SimConnections, HoldTheFirstTransferOfEachDirection) {
  on_ranks(2, [](Rank& me) {
    Array<int> x(10, 7 + me.rank);
    for (const int sender : {0, 1}) {
      const auto call = [&] {
        EXPECT_EQ(me.rank == sender
                      ? ncclSend(x.data(), 10, ncclInt, 1 - sender, me.comm, me.stream)
                      : ncclRecv(x.data(), 10, ncclInt, sender, me.comm, me.stream),
                  ncclSuccess);
      };
      EXPECT_FALSE(returns_alone(me, call)) << sender;
      call();
      me.finish();
      EXPECT_EQ(x.values()[9], 7);
    }
  });
}

TEST_F(SimConnections, EndWithAnAbort) {
  on_ranks(2, [](Rank& me) {
    Array<int> x(10, me.rank);
    if (me.rank == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(milliseconds(100));
        EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
      });
      EXPECT_NE(ncclAllReduce(x.data(), x.data(), 10, ncclInt, ncclSum, me.comm, me.stream),
                ncclSuccess);
      other.join();
    } else {
      EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
    }
    me.comm = nullptr;
  });
}

}  // namespace
}  // namespace tessera::sim::nccl::test
