// SPDX-License-Identifier: Apache-2.0
#include "call_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tessera::comm {
namespace {

using testing::HasSubstr;

CallInfo reduce_call(std::uint64_t sequence) {
  return {sequence, 1024, -1, Call::all_reduce, DType::f32, Op::sum, 0};
}

TEST(CallLog, TellsWhatEachCallDoes) {
  static CallPage page{};
  use_call_page(&page);
  LoggedCall done(reduce_call(1), 1, 2, "tp"), held(reduce_call(2), 1, 2, "tp"),
      issued(reduce_call(3), 1, 2, "tp");
  done.done();
  held.waited_for();
  const auto calls = recent(page, 100);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_THAT(describe(calls[0], now_ns()),
              HasSubstr("tp 1/2: all_reduce(sum, f32, 1024 elements), call 1: done in"));
  EXPECT_THAT(describe(calls[1], calls[1].waited_ns), HasSubstr("call 2: waiting for 0.0 s"));
  EXPECT_THAT(describe(calls[2], calls[2].issued_ns), HasSubstr("call 3: issued 0.0 s ago"));
  use_call_page(nullptr);
}

TEST(CallLog, KeepsTheLastOnesWhileOthersWrite) {
  static CallPage page{};
  use_call_page(&page);
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([] {
      for (std::uint64_t i = 1; i <= 5000; ++i)
        LoggedCall(reduce_call(i), 0, 1, "some axis with a name that is longer than its place")
            .done();
    });
  }
  for (int i = 0; i < 50; ++i)
    for (const CallView& view : recent(page, 100)) EXPECT_EQ(view.info.count, 1024);
  for (std::thread& writer : writers) writer.join();
  const auto calls = recent(page, 100);
  ASSERT_EQ(calls.size(), 100u);
  EXPECT_EQ(calls.back().ticket, 20000u);
  EXPECT_EQ(calls.front().ticket, 19901u);
  use_call_page(nullptr);
}

TEST(CallLog, KnowsAProcessThatDoesNotRun) {
  static CallPage page{};
  std::int64_t looked_ns = 0;
  const auto after = [&](std::int64_t seconds) {
    return standstill_seconds(page, looked_ns + seconds * 1'000'000'000);
  };
  EXPECT_EQ(after(60), 0) << "without a watchdog";
  use_call_page(&page);
  note_look();
  looked_ns = page.looked_ns;
  EXPECT_EQ(after(2), 0);
  EXPECT_DOUBLE_EQ(after(60), 60);
  {
    const NoLook telling;
    EXPECT_EQ(after(60), 0);
  }
  looked_ns = page.looked_ns;
  EXPECT_DOUBLE_EQ(after(60), 60);
  use_call_page(nullptr);
}

TEST(CallLog, KnowsThePlaceInTheStep) {
  static CallPage page{};
  EXPECT_EQ(place_of(page), "");
  note_place(page, "layers.14", "backward");
  EXPECT_EQ(place_of(page), "layers.14 backward");
  note_place(page, "", "reading data");
  EXPECT_EQ(place_of(page), "reading data");
  note_place(page, std::string(100, 'x'), "forward");
  EXPECT_EQ(place_of(page), std::string(47, 'x'));
}

}  // namespace
}  // namespace tessera::comm
