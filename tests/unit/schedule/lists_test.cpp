// SPDX-License-Identifier: Apache-2.0
// Checksums over many random cases: lists, times and the words of the checker stay as they are.
// They change only with a schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tessera/base/crc32c.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/schedule/timeline.hpp"

namespace tessera::schedule {
namespace {

constexpr int kCases = 40;

struct Checksums {
  std::uint32_t lists = 0, times = 0, faults = 0;
  bool operator==(const Checksums&) const = default;
};

struct Row {
  Kind kind;
  unsigned seed;
  Checksums expected;
};
constexpr Row kRows[] = {
    {Kind::eager_one_f_one_b, 2034, {0x660fa866, 0x3531bb8e, 0x0864174d}},
    {Kind::gpipe, 2026, {0x4232c631, 0x8726a562, 0xd4a9515f}},
    {Kind::one_f_one_b, 2027, {0xbf067bab, 0xf97da017, 0x9ee73545}},
    {Kind::interleaved, 2028, {0x91b98178, 0xa0dd10f5, 0x6f283dc5}},
    {Kind::looped_bfs, 2029, {0xb00fecfa, 0xf882c9b9, 0x27945ff7}},
    {Kind::zb_h1, 2030, {0x6e25aaa8, 0x9f15da8c, 0x80fd83d7}},
    {Kind::interleaved_zero_bubble, 2031, {0xd924befd, 0xaee9eea2, 0xb013be2f}},
    {Kind::zbv, 2032, {0xd54855e4, 0x9c1aaaa9, 0x3a7b538f}},
    {Kind::dual_pipe_v, 2033, {0x568baac5, 0x317000c4, 0x07477daf}}};

std::uint32_t with(std::uint32_t crc, const std::string& text) {
  return crc32c(crc, text.data(), text.size() + 1);
}

std::string text_of(const ActionLists& lists) {
  std::string text;
  for (const ActionList& list : lists) {
    for (const Action& action : list) text += to_string(action) + " ";
    text += "\n";
  }
  return text;
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::size_t>(high - low + 1)));
  }

 private:
  std::mt19937 random_;
};

/// One action is swapped with another, left out, repeated or changed.
void damage(ActionLists& lists, Draw& draw) {
  ActionList& list = lists[PipelineRank(draw.between(0, lists.size() - 1))];
  if (list.empty()) return;
  const std::size_t at = draw.below(list.size()), other = draw.below(list.size());
  switch (draw.below(5)) {
    case 0:
      return std::swap(list[at], list[other]);
    case 1:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 2:
      return list.push_back(list[at]);
    case 3:
      ++list[at].microbatch;
      return;
    default:
      ++list[at].stage;
  }
}

Durations durations_of(Draw& draw) {
  const double forward = 1.0 + draw.between(0, 3), input = 1.0 + draw.between(0, 3);
  const double weight = 1.0 + draw.between(0, 3);
  return {forward, input, weight, 0.5 * draw.between(0, 3)};
}

void add_case(Checksums& sums, const Traits& schedule, Draw& draw) {
  const int ranks = draw.between(1, 9), microbatches = draw.between(1, 24),
            several = draw.between(1, 4);
  const StageMap map = schedule.stages == StagesPerRank::several
                           ? schedule.usual_map(ranks, several)
                           : schedule.usual_map(ranks);
  ActionLists lists = make_schedule(schedule.kind, map, microbatches);
  sums.lists = with(sums.lists, text_of(lists));
  for (const auto& rank : simulate(lists, map, durations_of(draw)).ranks)
    for (const TimedAction& timed : rank)
      sums.times = crc32c(crc32c(sums.times, &timed.begin, sizeof timed.begin), &timed.end,
                          sizeof timed.end);
  for (int faults = 1; faults <= 3; ++faults) {
    damage(lists, draw);
    sums.faults = with(sums.faults, find_fault(lists, map, microbatches));
  }
}

TEST(Lists, TimesAndFaultsStayTheSame) {
  for (const Row& row : kRows) {
    Draw draw(row.seed);
    Checksums sums;
    for (int n = 0; n < kCases; ++n) add_case(sums, traits_of(row.kind), draw);
    EXPECT_EQ(sums, row.expected) << traits_of(row.kind).name << std::hex << " " << sums.lists
                                  << " " << sums.times << " " << sums.faults;
  }
}

TEST(Lists, EveryScheduleHasARow) {
  for (const Traits& traits : all_traits())
    EXPECT_TRUE(std::ranges::any_of(kRows, [&](const Row& row) { return row.kind == traits.kind; }))
        << traits.name;
}

/// A file may have few actions with large numbers.
TEST(Lists, MemoryFollowsTheActions) {
  constexpr int kStages = 3000, kMicrobatch = 999'999;
  const StageMap map = StageMap::loop(kStages);
  ActionLists lists(kStages);
  for (const StageIndex stage : map.each_stage())
    lists[map.rank_of(stage)] = {{ActionKind::forward, stage, MicrobatchIndex(kMicrobatch)}};
  EXPECT_EQ(simulate(lists, map).end(), kStages);
  EXPECT_EQ(find_fault(with_transfers(lists, map), map, kMicrobatch + 1), "never done: 0F0");
}

}  // namespace
}  // namespace tessera::schedule
