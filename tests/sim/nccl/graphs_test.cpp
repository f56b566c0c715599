// SPDX-License-Identifier: Apache-2.0
// Operations that are captured, and run at each launch of their graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

/// What `issue` gives the rank's stream, as a graph.
template <class Issue>
cudaGraphExec_t captured(const Rank& me, Issue issue) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(me.stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  issue();
  EXPECT_EQ(cudaStreamEndCapture(me.stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&made, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  return made;
}

TEST(Graphs, CommunicateAtEachLaunch) {
  on_ranks(2, [](Rank& me) {
    Array<float> sum(3, 1.0f), mine(2, static_cast<float>(me.rank)), theirs(2, 9.0f);
    const auto add = [&] {
      ASSERT_EQ(ncclAllReduce(sum.data(), sum.data(), 3, ncclFloat, ncclSum, me.comm, me.stream),
                ncclSuccess);
    };
    const cudaGraphExec_t graph = captured(me, [&] {
      add();
      ncclGroupStart();
      ncclSend(mine.data(), 2, ncclFloat, 1 - me.rank, me.comm, me.stream);
      ncclRecv(theirs.data(), 2, ncclFloat, 1 - me.rank, me.comm, me.stream);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    });
    me.finish();
    EXPECT_EQ(sum.values(), std::vector<float>(3, 1.0f));  // nothing has run
    ASSERT_EQ(cudaGraphLaunch(graph, me.stream), cudaSuccess);
    add();
    ASSERT_EQ(cudaGraphLaunch(graph, me.stream), cudaSuccess);
    me.finish();
    EXPECT_EQ(sum.values(), std::vector<float>(3, 8.0f));
    EXPECT_EQ(theirs.values(), std::vector<float>(2, static_cast<float>(1 - me.rank)));
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  });
}

/// What one rank has in a graph, another may issue by itself: they meet all the same.
TEST(Graphs, MeetCallsOutsideOfGraphs) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(4, 1.0f);
    const auto add = [&] {
      ncclAllReduce(x.data(), x.data(), 4, ncclFloat, ncclSum, me.comm, me.stream);
    };
    const cudaGraphExec_t graph = captured(me, add);
    if (me.rank == 0)
      ASSERT_EQ(cudaGraphLaunch(graph, me.stream), cudaSuccess);
    else
      add();
    me.finish();
    EXPECT_EQ(x.values(), std::vector<float>(4, 2.0f));
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  });
}

TEST(Graphs, EndBeforeTheirCommunicators) {
  on_ranks(1, [](Rank& me) {
    Array<float> x(4, 1.0f);
    const cudaGraphExec_t graph = captured(
        me, [&] { ncclAllReduce(x.data(), x.data(), 4, ncclFloat, ncclSum, me.comm, me.stream); });
    EXPECT_EQ(ncclCommFinalize(me.comm), ncclInvalidUsage);
    EXPECT_THAT(last_error(), testing::HasSubstr("is ended before the graphs"));
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
    ncclCommAbort(std::exchange(me.comm, nullptr));
  });
}

TEST(Graphs, AreCheckedAtEachLaunch) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(4, 1.0f);
    const std::size_t count = me.rank == 0 ? 4 : 3;
    const cudaGraphExec_t graph = captured(me, [&] {
      ncclAllReduce(x.data(), x.data(), count, ncclFloat, ncclSum, me.comm, me.stream);
    });
    ASSERT_EQ(cudaGraphLaunch(graph, me.stream), cudaSuccess);
    EXPECT_EQ(failure_of(me.comm), ncclInvalidUsage);
    EXPECT_THAT(last_error(), testing::HasSubstr("ncclAllReduce"));
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);  // an abort waits for it
    ncclCommAbort(std::exchange(me.comm, nullptr));
    me.finish();
  });
}

}  // namespace
}  // namespace tessera::sim::nccl::test
