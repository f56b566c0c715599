#include "tessera/parallel/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::parallel {
namespace {

using Kind = ActionKind;

std::string letters(const ActionList& list) {
  std::string text;
  for (const Action& action : list) text += (text.empty() ? "" : " ") + to_string(action);
  return text;
}

TEST(Schedule, OrderOfComputations) {
  EXPECT_EQ(letters(compute_order(Schedule::gpipe, 2, 1, 2)), "1F0 1F1 1B0 1B1");
  EXPECT_EQ(letters(compute_order(Schedule::one_f_one_b, 3, 0, 4)), "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  EXPECT_EQ(letters(compute_order(Schedule::one_f_one_b, 3, 2, 3)), "2F0 2B0 2F1 2B1 2F2 2B2");
}

TEST(Schedule, EveryScheduleEndsUnderRendezvous) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b})
    for (int stages = 1; stages <= 9; ++stages)
      for (int microbatches = 1; microbatches <= 17; ++microbatches)
        EXPECT_EQ(find_fault(make_schedule(schedule, stages, microbatches), microbatches), "")
            << static_cast<int>(schedule) << " " << stages << " " << microbatches;
}

/// 1F1B's reason: no more than stages - rank microbatches are alive on a rank.
TEST(Schedule, OneForwardOneBackwardBoundsActivations) {
  for (int rank = 0; rank < 6; ++rank) {
    int alive = 0, most = 0;
    for (const Action& action : compute_order(Schedule::one_f_one_b, 6, rank, 20)) {
      alive += action.kind == Kind::forward ? 1 : -1;
      most = std::max(most, alive);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(most, 6 - rank);
  }
}

TEST(Schedule, CheckerFindsSwappedTransfers) {
  auto lists = make_schedule(Schedule::one_f_one_b, 2, 3);
  auto& list = lists[0];
  const auto is_transfer = [](const Action& a) { return a.kind != Kind::forward && a.kind != Kind::backward; };
  const auto first = std::ranges::find_if(list, is_transfer);
  const auto second = std::find_if(first + 1, list.end(), [&](const Action& a) { return is_transfer(a) && a.kind != first->kind; });
  ASSERT_NE(second, list.end());
  std::iter_swap(first, second);
  EXPECT_NE(find_fault(lists, 3), "");
}

TEST(Schedule, CheckerFindsWhatIsMissingOrTwice) {
  const auto good = make_schedule(Schedule::gpipe, 2, 2);
  auto lists = good;
  std::erase(lists[1], Action{Kind::backward, 1, 1});
  EXPECT_NE(find_fault(lists, 2), "");
  lists = good;
  lists[0].push_back(lists[0].front());
  EXPECT_NE(find_fault(lists, 2).find("done before"), std::string::npos);
  lists = good;
  std::erase(lists[0], Action{Kind::send_forward, 0, 1});
  EXPECT_NE(find_fault(lists, 2).find("deadlock"), std::string::npos);
}

}  // namespace
}  // namespace tessera::parallel
