// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/schedule/timeline.hpp"

namespace tessera::schedule {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

Action action(ActionKind kind, int stage, int microbatch) {
  return {kind, StageIndex(stage), MicrobatchIndex(microbatch)};
}

std::string letters(const ActionList& list) {
  std::string text;
  for (const Action& action : list) text += (text.empty() ? "" : " ") + to_string(action);
  return text;
}

/// Maps that a schedule runs on, for `ranks` ranks.
std::vector<StageMap> maps_of(const Traits& schedule, int ranks) {
  if (schedule.stages != StagesPerRank::several) return {schedule.usual_map(ranks)};
  return {schedule.usual_map(ranks, 1), schedule.usual_map(ranks, 2), schedule.usual_map(ranks, 3)};
}

ActionList order_of(Kind schedule, int ranks, int rank, int microbatches) {
  return compute_orders(schedule, maps_of(traits_of(schedule), ranks).back(),
                        microbatches)[PipelineRank(rank)];
}

TEST(Schedule, OrderOfComputations) {
  EXPECT_EQ(letters(order_of(Kind::gpipe, 2, 1, 2)), "1F0 1F1 1B0 1B1");
  EXPECT_EQ(letters(order_of(Kind::one_f_one_b, 3, 0, 4)), "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  EXPECT_EQ(letters(order_of(Kind::one_f_one_b, 3, 2, 3)), "2F0 2B0 2F1 2B1 2F2 2B2");
  EXPECT_EQ(letters(order_of(Kind::eager_one_f_one_b, 2, 0, 4)), "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  EXPECT_EQ(letters(order_of(Kind::eager_one_f_one_b, 2, 1, 2)), "1F0 1B0 1F1 1B1");
  EXPECT_EQ(letters(order_of(Kind::zb_h1, 2, 1, 3)), "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
  EXPECT_EQ(letters(order_of(Kind::zbv, 1, 0, 2)),
            "0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1");
}

TEST(Schedule, EveryScheduleEndsUnderRendezvous) {
  for (const Traits& schedule : all_traits())
    for (const int ranks : {1, 2, 3, 4, 5, 8})
      for (const StageMap& map : maps_of(schedule, ranks))
        for (const int microbatches : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17})
          ASSERT_EQ(find_fault(make_schedule(schedule.kind, map, microbatches), map, microbatches),
                    "")
              << schedule.name << " " << ranks << " " << map.stages() << " " << microbatches;
}

/// Stages may be dealt in any order as long as it is the same each time round.
TEST(Schedule, RanksMayBeReordered) {
  const StageMap loop = StageMap::of({1, 0, 2, 1, 0, 2}), v = StageMap::of({1, 0, 0, 1}),
                 one = StageMap::of({2, 0, 1});
  EXPECT_EQ(find_fault(make_schedule(Kind::interleaved, loop, 6), loop, 6), "");
  EXPECT_EQ(find_fault(make_schedule(Kind::zbv, v, 5), v, 5), "");
  EXPECT_EQ(find_fault(make_schedule(Kind::zb_h1, one, 5), one, 5), "");
}

std::string refusal(Kind schedule, const StageMap& map) {
  return error_of(ExitCode::usage, [&] { compute_orders(schedule, map, 4); });
}

TEST(Schedule, RefusesMapsThatItIsNotMadeFor) {
  EXPECT_THAT(refusal(Kind::one_f_one_b, StageMap::loop(2, 2)),
              HasSubstr("one stage on each rank"));
  EXPECT_THAT(refusal(Kind::zbv, StageMap::loop(2, 2)), HasSubstr("stage map \"v\""));
  EXPECT_THAT(refusal(Kind::interleaved, StageMap::v(3)), HasSubstr("stage map \"loop\""));
  EXPECT_THAT(refusal(Kind::looped_bfs, StageMap::of({0, 1, 0})),
              HasSubstr("same number of stages"));
}

/// Activations alive at once. 1F1B: p - rank; its eager form: one more for each rank behind; ZB-H1
/// and ZB-V: what 1F1B has on its first rank; GPipe: all.
TEST(Schedule, PeakOfActivations) {
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(peak_activations(order_of(Kind::one_f_one_b, 6, rank, 20)), 6 - rank);
    EXPECT_EQ(peak_activations(order_of(Kind::eager_one_f_one_b, 6, rank, 20)), 11 - 2 * rank);
    EXPECT_EQ(peak_activations(order_of(Kind::zb_h1, 6, rank, 20)), 6);
    EXPECT_EQ(peak_activations(order_of(Kind::zbv, 6, rank, 20)), 2 * 6);
    EXPECT_EQ(peak_activations(order_of(Kind::dual_pipe_v, 6, rank, 20)), 2 * 6 + 1);
    EXPECT_EQ(peak_activations(order_of(Kind::gpipe, 6, rank, 20)), 20);
  }
}

TEST(Schedule, PairsEndUnderRendezvous) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const int microbatches : {1, 2, 5, 7, 8, 9, 16, 17, 24}) {
      const StageMap map = StageMap::v(ranks);
      const ActionLists lists = with_transfers(
          compute_orders(Kind::dual_pipe_v, map, microbatches, Pairs::together), map);
      ASSERT_EQ(find_fault(lists, map, microbatches), "") << ranks << " " << microbatches;
      const ActionLists apart = compute_orders(Kind::dual_pipe_v, map, microbatches);
      EXPECT_EQ(
          with_pairs_apart(compute_orders(Kind::dual_pipe_v, map, microbatches, Pairs::together)),
          apart);
    }
}

/// 2 (p - 1), as PyTorch's pairs are one action.
TEST(Schedule, PairsWaitForTheInputsOfBoth) {
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 32}, {3, 6}}) {
    const StageMap map = StageMap::v(p);
    const auto lists = compute_orders(Kind::dual_pipe_v, map, m, Pairs::together);
    const double idle = 2.0 * (p - 1);
    EXPECT_NEAR(simulate(lists, map).bubble(), idle / (idle + 6 * m), 1e-12) << p;
  }
}

TEST(Schedule, PairsTakeLessByWhatTheyHide) {
  const StageMap map = StageMap::of({0, 0});
  const ActionLists lists{{action(ActionKind::forward, 0, 0), action(ActionKind::forward, 1, 0),
                           action(ActionKind::forward, 0, 1), action(ActionKind::backward, 1, 0)}};
  ActionLists pair = lists;
  pair[PipelineRank(0)][2].overlaps_next = true;
  const Durations durations{
      .forward = 2, .input = 3, .weight = 4, .hidden_forward = 0.5, .hidden_input = 0.75};
  EXPECT_DOUBLE_EQ(simulate(lists, map, durations).end(), 2 + 2 + 2 + 7);
  const Timeline timeline = simulate(pair, map, durations);
  EXPECT_DOUBLE_EQ(timeline.end(), 2 + 2 + 2 + 7 - 0.5 - 0.75);
  EXPECT_DOUBLE_EQ(timeline.bubble(), 0);
  for (const std::size_t i : {2, 3})
    EXPECT_DOUBLE_EQ(timeline.ranks[PipelineRank(0)][i].begin, 4) << "the two begin together";
  EXPECT_THROW(simulate(pair, map, IndexedVector<StageIndex, Durations>(1, durations)),
               ContractViolation);
}

TEST(Schedule, PairsThatNeedEachOtherAreFound) {
  const StageMap map = StageMap::of({0, 0});
  ActionLists lists{{action(ActionKind::forward, 0, 0), action(ActionKind::forward, 1, 0),
                     action(ActionKind::backward, 1, 0), action(ActionKind::backward, 0, 0)}};
  EXPECT_EQ(find_fault(lists, map, 1), "");
  lists[PipelineRank(0)][1].overlaps_next = true;
  EXPECT_THAT(find_fault(lists, map, 1), HasSubstr("no backward of another stage follows"));
  lists = {{action(ActionKind::forward, 0, 0), action(ActionKind::forward, 1, 0),
            action(ActionKind::forward, 0, 1), action(ActionKind::backward, 1, 1)}};
  lists[PipelineRank(0)][2].overlaps_next = true;
  EXPECT_THAT(find_fault(lists, map, 2), HasSubstr("(1B1): its F was not done"));
}

double bubble(Kind schedule, int ranks, int microbatches) {
  const auto map = traits_of(schedule).usual_map(ranks);
  return simulate(make_schedule(schedule, map, microbatches), map).bubble();
}

/// performance.md's table, which is exact: idle is a number of F a rank, whatever m. DualPipeV's
/// pairs of F and B come one after the other here.
TEST(Schedule, BubblesAreThePublishedOnes) {
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 32}, {3, 6}, {8, 16}}) {
    const auto of = [](double idle, double busy) { return idle / (idle + busy); };
    const double one = 3.0 * m, two = 6.0 * m, waits = p - 1;
    EXPECT_NEAR(bubble(Kind::gpipe, p, m), of(3 * waits, one), 1e-12);
    EXPECT_NEAR(bubble(Kind::one_f_one_b, p, m), of(3 * waits, one), 1e-12);
    EXPECT_NEAR(bubble(Kind::eager_one_f_one_b, p, m), of(3 * waits, one), 1e-12);
    EXPECT_NEAR(bubble(Kind::interleaved, p, m), of(3 * waits, two), 1e-12);
    EXPECT_NEAR(bubble(Kind::looped_bfs, p, m), of(3 * waits, two), 1e-12);
    EXPECT_NEAR(bubble(Kind::zb_h1, p, m), of(waits, one), 1e-12);
    EXPECT_NEAR(bubble(Kind::interleaved_zero_bubble, p, m), of(waits, two), 1e-12);
    EXPECT_NEAR(bubble(Kind::zbv, p, m), of(waits, two), 1e-12);
    EXPECT_NEAR(bubble(Kind::dual_pipe_v, p, m), of(waits, two), 1e-12);
  }
  EXPECT_NEAR(bubble(Kind::one_f_one_b, 4, 8), 0.273, 5e-4);
  EXPECT_NEAR(bubble(Kind::interleaved, 8, 32), 0.099, 5e-4);
  EXPECT_NEAR(bubble(Kind::zb_h1, 4, 8), 0.111, 5e-4);
  EXPECT_NEAR(bubble(Kind::zbv, 8, 32), 0.035, 5e-4);
}

TEST(Schedule, ZeroBubbleInsideEachRanksOwnSpan) {
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 32}}) {
    const auto map = StageMap::v(p);
    const Timeline timeline = simulate(compute_orders(Kind::zbv, map, m), map);
    for (const PipelineRank rank : timeline.ranks.indexes())
      EXPECT_NEAR(timeline.bubble_of(rank), 0, 1e-12);
  }
}

TEST(Schedule, DurationsMoveTheTimeline) {
  const auto map = StageMap::loop(2);
  const auto lists = compute_orders(Kind::gpipe, map, 1);
  // F0, the wire, F1, B1 (I and W), the wire, B0.
  EXPECT_DOUBLE_EQ(simulate(lists, map, {2, 3, 4, 0.5}).end(), 2 + 0.5 + 2 + 7 + 0.5 + 7);
}

/// The forward that a rank computes next has arrived while it computed: transfers cost the time of
/// the first and the last alone.
TEST(Schedule, EagerForwardsHideTransfers) {
  const auto map = StageMap::loop(4);
  const auto end = [&](Kind schedule, double transfer) {
    return simulate(compute_orders(schedule, map, 16), map, {1, 1, 1, transfer}).end();
  };
  const double alone = end(Kind::one_f_one_b, 0);
  EXPECT_DOUBLE_EQ(end(Kind::eager_one_f_one_b, 0), alone);
  EXPECT_DOUBLE_EQ(end(Kind::eager_one_f_one_b, 0.5), alone + 2 * 3 * 0.5);
  EXPECT_GT(end(Kind::one_f_one_b, 0.5), alone + 16 * 0.5);
}

TEST(Schedule, StagesMayDiffer) {
  const StageMap map = StageMap::loop(2);
  const auto lists = make_schedule(Kind::one_f_one_b, map, 1);
  const IndexedVector<StageIndex, Durations> each{{2, 3, 4, 0.5}, {5, 6, 7, 0.25}};
  EXPECT_DOUBLE_EQ(simulate(lists, map, each).end(), 2 + 0.25 + 5 + 13 + 0.5 + 7);
}

TEST(Schedule, NeighboursOnOneRankNeedNoTransfer) {
  const auto map = StageMap::v(2);
  for (const ActionList& list : make_schedule(Kind::zbv, map, 4))
    for (const Action& a : list) {
      if (computes(a.kind)) continue;
      const bool turn =
          (a.stage == StageIndex(1) &&
           (a.kind == ActionKind::send_forward || a.kind == ActionKind::recv_backward)) ||
          (a.stage == StageIndex(2) &&
           (a.kind == ActionKind::recv_forward || a.kind == ActionKind::send_backward));
      EXPECT_FALSE(turn) << to_string(a);
    }
}

/// A rank that lags asks for the next gradient before the computation during which it arrives.
TEST(Schedule, ReceivesComeBeforeTheComputationThatHidesThem) {
  const auto map = StageMap::loop(2);
  const std::string list = letters(make_schedule(Kind::eager_one_f_one_b, map, 5)[PipelineRank(0)]);
  EXPECT_THAT(list, HasSubstr("0B0 RECV_B 0.1 0F3 SEND_F 0.3 0B1 RECV_B 0.2 0F4 SEND_F 0.4"));
}

TEST(Schedule, CheckerFindsSwappedTransfers) {
  const auto map = StageMap::loop(2);
  auto lists = make_schedule(Kind::one_f_one_b, map, 3);
  auto& list = lists[PipelineRank(0)];
  const auto is_transfer = [](const Action& a) { return !computes(a.kind); };
  const auto first = std::ranges::find_if(list, is_transfer);
  const auto second = std::find_if(first + 1, list.end(), [&](const Action& a) {
    return is_transfer(a) && a.kind != first->kind;
  });
  ASSERT_NE(second, list.end());
  std::iter_swap(first, second);
  EXPECT_NE(find_fault(lists, map, 3), "");
}

TEST(Schedule, CheckerFindsWhatIsMissingOrTwice) {
  const auto map = StageMap::loop(2);
  const auto good = make_schedule(Kind::gpipe, map, 2);
  auto lists = good;
  std::erase(lists[PipelineRank(1)], action(ActionKind::backward, 1, 1));
  EXPECT_NE(find_fault(lists, map, 2), "");
  lists = good;
  lists[PipelineRank(0)].push_back(lists[PipelineRank(0)].front());
  EXPECT_THAT(find_fault(lists, map, 2), HasSubstr("done before"));
  lists = good;
  std::erase(lists[PipelineRank(0)], action(ActionKind::send_forward, 0, 1));
  EXPECT_THAT(find_fault(lists, map, 2), HasSubstr("deadlock"));
}

TEST(Schedule, CheckerKnowsInputAndWeightGradients) {
  const auto map = StageMap::loop(2);
  const auto good = make_schedule(Kind::zb_h1, map, 2);
  auto lists = good;
  std::erase(lists[PipelineRank(1)], action(ActionKind::weight_gradient, 1, 1));
  EXPECT_EQ(find_fault(lists, map, 2), "never done: 1W1");
  lists = good;
  std::ranges::replace(lists[PipelineRank(1)], action(ActionKind::weight_gradient, 1, 1),
                       action(ActionKind::backward, 1, 1));
  EXPECT_THAT(find_fault(lists, map, 2), HasSubstr("(1B1): it was done before"));
  lists = good;
  std::iter_swap(
      std::ranges::find(lists[PipelineRank(1)], action(ActionKind::weight_gradient, 1, 0)),
      std::ranges::find(lists[PipelineRank(1)], action(ActionKind::input_gradient, 1, 0)));
  EXPECT_THAT(find_fault(lists, map, 2), HasSubstr("(1W0): its I was not done"));
  lists = good;
  lists[PipelineRank(0)].push_back(action(ActionKind::weight_gradient, 1, 0));
  EXPECT_THAT(find_fault(lists, map, 2), HasSubstr("not on this rank"));
}

}  // namespace
}  // namespace tessera::schedule
