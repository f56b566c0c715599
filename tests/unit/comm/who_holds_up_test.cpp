// SPDX-License-Identifier: Apache-2.0
// Hangs of every kind, as their ranks' traces show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/comm/call_trace.hpp"

namespace tessera::comm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Ranks 0..3 on two nodes, two by two in tp (0 1, 2 3) and in dp (0 2, 1 3); all are in step 812.
class WhoHoldsUp : public testing::Test {
 protected:
  WhoHoldsUp() {
    for (int rank = 0; rank < 4; ++rank) {
      CallTrace trace;
      trace.rank = rank;
      trace.ranks = 4;
      trace.host = rank < 2 ? "node1" : "node2";
      trace.step = 812;
      trace.step_seconds = 70;
      trace.place = "layers.14 backward";
      traces.push_back(trace);
      on(rank, "tp", 6, "done");
      on(rank, "dp", 3, "done");
    }
  }

  TracedCall& on(int rank, const std::string& axis, std::int64_t number, const std::string& state,
                 const std::string& name = "all_gather(f32, 8 elements)") {
    TracedCall call;
    call.axis = axis;
    call.size = axis == "world" ? 4 : 2;
    call.first = axis == "tp" ? rank / 2 * 2 : axis == "dp" ? rank % 2 : 0;
    call.stride = axis == "dp" ? 2 : 1;
    call.rank = axis == "tp" ? rank % 2 : axis == "dp" ? rank / 2 : rank;
    call.number = number;
    call.name = name;
    call.state = state;
    call.seconds = state == "waiting" ? 61 : 62;
    return traces[static_cast<std::size_t>(rank)].calls.emplace_back(call);
  }
  void transfer(int rank, int peer, std::int64_t number, const std::string& state) {
    TracedCall& call = on(rank, "dp", number, state, "group of 1 transfers");
    call.group = true;
    call.peer = peer;
  }
  void forget(int rank) {
    std::erase_if(traces, [&](const CallTrace& trace) { return trace.rank == rank; });
  }

  std::vector<CallTrace> traces;
};

TEST_F(WhoHoldsUp, IsNobodyWhereNoRankWaits) { EXPECT_THAT(who_holds_up(traces), IsEmpty()); }

TEST_F(WhoHoldsUp, IsTheRankThatHasNotEntered) {
  on(1, "tp", 7, "waiting");
  EXPECT_THAT(
      who_holds_up(traces),
      ElementsAre(
          "rank 0 (node node1) has not entered all_gather 7 of tp (f32, 8 elements), in which rank "
          "1 "
          "(node node1) has waited for 61.0 s; last seen at step 812, layers.14 backward; its last "
          "call was all_gather 3 of dp (f32, 8 elements), done 62.0 s before"));
}

TEST_F(WhoHoldsUp, IsTheEndOfAChain) {
  on(0, "tp", 7, "waiting");  // for 1, which waits for 3
  on(1, "dp", 4, "waiting");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("rank 3 (node node2) has not entered all_gather 4 of dp")));
}

/// Stages in the middle of a pipeline have more transfers in a step than those at its ends.
TEST_F(WhoHoldsUp, IsNoRankWhoseGraphHasMoreCalls) {
  on(0, "world", 1, "waiting", "graph of 8 calls");
  on(1, "world", 1, "waiting", "graph of 16 calls");
  on(2, "world", 1, "waiting", "graph of 16 calls");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("rank 3 (node node2) has not entered graph of 8 calls 1")));
}

TEST_F(WhoHoldsUp, IsNotARankOfAnotherGroupOfTheAxis) {
  on(2, "tp", 7, "waiting");
  on(3, "tp", 7, "waiting");
  on(0, "dp", 4, "waiting");
  on(2, "dp", 4, "done");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("all members whose traces are here have entered")));
}

TEST_F(WhoHoldsUp, IsARankThatLeftNoTrace) {
  on(0, "tp", 7, "waiting");
  on(0, "world", 1, "done");
  for (int rank : {0, 2, 3}) on(rank, "world", 2, "waiting");
  traces[0].calls[2].state = "issued";  // it waits on the world only
  forget(1);
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(AllOf(HasSubstr("rank 1 has not entered all_gather 2 of world"),
                                HasSubstr("it left no trace"))));
}

TEST_F(WhoHoldsUp, AreTwoThatWaitForEachOther) {
  on(0, "tp", 7, "waiting");
  on(1, "dp", 4, "waiting");
  on(3, "tp", 7, "waiting");
  on(2, "dp", 4, "waiting");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(AllOf(HasSubstr("wait for each other"), HasSubstr("rank 0 (node node1)"),
                                HasSubstr("rank 3 (node node2)"))));
}

TEST_F(WhoHoldsUp, AreMembersThatCallOtherThings) {
  on(0, "tp", 7, "waiting");
  on(1, "tp", 7, "waiting", "reduce_scatter(sum, f32, 16 elements)");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre("ranks differ in call 7 of tp: rank 0 (node node1) calls all_gather(f32, "
                          "8 elements), rank 1 "
                          "(node node1) calls reduce_scatter(sum, f32, 16 elements)"));
}

TEST_F(WhoHoldsUp, LetsAllToAllDifferInItsCounts) {
  on(0, "tp", 7, "waiting", "all_to_all_v(f32, 8 elements)");
  on(1, "tp", 7, "waiting", "all_to_all_v(f32, 9 elements)");
  EXPECT_THAT(who_holds_up(traces), ElementsAre(HasSubstr("look at the network")));
}

TEST_F(WhoHoldsUp, IsThePeerOfATransfer) {
  transfer(0, 1, 5, "waiting");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("rank 2 (node node2) has not entered group 5 of dp")));
  transfer(2, 0, 9, "waiting");  // groups of two ranks need not have the same numbers
  EXPECT_THAT(who_holds_up(traces), ElementsAre(HasSubstr("look at the network")));
}

TEST_F(WhoHoldsUp, IsARankThatNeverCalledThere) {
  for (CallTrace& trace : traces)
    std::erase_if(trace.calls, [](const TracedCall& call) { return call.axis == "dp"; });
  on(1, "dp", 1, "waiting");
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("rank 3 (node node2) has not entered all_gather 1 of dp")));
}

TEST_F(WhoHoldsUp, IsARankThatBeganAndWentNowhere) {
  on(1, "tp", 7, "waiting");
  on(0, "tp", 7, "issued");
  EXPECT_THAT(
      who_holds_up(traces),
      ElementsAre(HasSubstr("rank 0 (node node1) has begun but not ended all_gather 7 of tp")));
}

TEST_F(WhoHoldsUp, IsARankWhoseProcessStopped) {
  on(0, "tp", 7, "waiting");
  on(1, "dp", 4, "waiting");  // for a moment, when it was stopped
  on(3, "tp", 7, "waiting");
  on(2, "dp", 4, "waiting");
  traces[1].standstill_seconds = 60;
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(AllOf(HasSubstr("rank 1 (node node1) has not entered"),
                                HasSubstr("its process has not run for 60.0 s"))));
}

TEST_F(WhoHoldsUp, IsAStoppedRankThatHadBegun) {
  transfer(0, 1, 5, "waiting");
  transfer(2, 0, 9, "waiting");
  traces[2].standstill_seconds = 60;
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("rank 2 (node node2) has begun but not ended group 5 of dp")));
}

TEST_F(WhoHoldsUp, IsAStoppedRankWhoseCallsAreOver) {
  on(1, "tp", 7, "waiting");
  on(0, "tp", 7, "done");
  traces[0].standstill_seconds = 60;
  const auto named = ElementsAre(AllOf(HasSubstr("rank 0 (node node1) is stopped"),
                                       HasSubstr("its process has not run for 60.0 s")));
  EXPECT_THAT(who_holds_up(traces), named);
  on(0, "tp", 8, "done");
  EXPECT_THAT(who_holds_up(traces), named);
  on(2, "tp", 7, "waiting");  // in which another rank is missing
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("rank 0 (node node1) is stopped"),
                          HasSubstr("rank 3 (node node2) has not entered all_gather 7 of tp")));
}

TEST_F(WhoHoldsUp, SaysWhatFailed) {
  on(1, "tp", 7, "waiting");
  traces[0].failure = "rank 0: CUDA out of memory";
  EXPECT_THAT(who_holds_up(traces),
              ElementsAre(HasSubstr("it has failed: rank 0: CUDA out of memory")));
}

TEST_F(WhoHoldsUp, KnowsARankThatIsAhead) {
  on(1, "tp", 7, "waiting");
  on(0, "tp", 8, "issued");
  EXPECT_THAT(who_holds_up(traces), ElementsAre(HasSubstr("look at the network")));
}

TEST_F(WhoHoldsUp, TravelsAsText) {
  transfer(0, 1, 5, "waiting");
  traces[0].failure = "a \"quoted\" word";
  traces[0].job_unix_seconds = 1700000000.25;
  traces[1].standstill_seconds = 7.5;
  const std::vector<CallTrace> got = call_traces_of(text_of(traces));
  EXPECT_EQ(text_of(got), text_of(traces));
  EXPECT_EQ(got[0].calls.back().peer, 1);
  EXPECT_EQ(got[0].job_unix_seconds, 1700000000.25);
  EXPECT_EQ(got[1].standstill_seconds, 7.5);
  EXPECT_THROW(call_traces_of("[{}]"), Error);
  EXPECT_THROW(call_traces_of("["), Error);
}

}  // namespace
}  // namespace tessera::comm
