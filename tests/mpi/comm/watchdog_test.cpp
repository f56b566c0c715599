// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "call_log.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "peers.hpp"

namespace tessera::comm {
namespace {

using std::chrono::milliseconds;
using test::Values;
using test::world;
using testing::HasSubstr;

struct Reports {
  std::mutex mutex;
  std::vector<std::string> all;
  void add(const std::string& report) {
    const std::lock_guard lock(mutex);
    all.push_back(report);
  }
};

/// Until all other ranks of this node have told of `step`, for half a minute at most.
void wait_for_step(std::int64_t step) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int rank = 0; rank < world().size(); ++rank)
    while (rank != world().rank() && page_of(rank)->step != step &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(10));
}

/// The last rank comes late: the others' watchdogs say what they wait for and that it is not in any
/// call.
TEST(Watchdog, NamesTheCallAndTheRankThatIsMissing) {
  if (world().size() < 2) GTEST_SKIP() << "nobody to wait for";
  Reports reports;
  const int late = world().size() - 1;
  {
    Watchdog watchdog(std::chrono::seconds(2), world().rank(), [&](const Error& report) {
      reports.add(report.what());
      Watchdog::heartbeat(13);
    });
    Watchdog::heartbeat(12);
    Values x(DType::f32, 10);
    auto comm = world().make(Backend::mpi, "dp_shard");
    if (world().rank() == late) wait_for_step(13);
    comm->all_reduce(x.buffer()).wait();
  }
  if (world().rank() == late) return;
  ASSERT_FALSE(reports.all.empty());
  const std::string& report = reports.all.back();
  EXPECT_THAT(report, HasSubstr(fmt::format("rank {} (step 12", world().rank())));
  EXPECT_THAT(
      report,
      HasSubstr(fmt::format(
          "hangs in dp_shard {}/{}: all_reduce(sum, f32, 10 elements), call 1: waiting for ",
          world().rank(), world().size())));
  EXPECT_THAT(report, testing::ContainsRegex(fmt::format(
                          "rank {} \\(step 12.*\\): not in a call; the last one was", late)));
  EXPECT_EQ(reports.all.size(), 1u);
}

/// A handler may take long: leave traces, wait for other nodes, end the job.
TEST(Watchdog, RunsWhileItTells) {
  const auto in_a_minute = [] {
    return standstill_seconds(call_page(), now_ns() + 60'000'000'000);
  };
  std::atomic<bool> look{false};
  std::atomic<double> telling{-1};
  {
    Watchdog::Also also;
    also.look = [&]() -> std::optional<Error> {
      if (!look.exchange(false)) return std::nullopt;
      return Error(ExitCode::communication, "told");
    };
    Watchdog watchdog(
        std::chrono::seconds(2), world().rank(), [&](const Error&) { telling = in_a_minute(); },
        std::move(also));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto wait_until = [&](auto reached) {
      while (!reached() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(milliseconds(10));
    };
    wait_until([&] { return in_a_minute() > 0; });
    EXPECT_GT(in_a_minute(), 0) << "the watchdog does not look";
    look = true;
    wait_until([&] { return telling >= 0; });
    EXPECT_EQ(telling, 0);
  }
  EXPECT_EQ(in_a_minute(), 0) << "there is none any more";
}

/// Those of an earlier test are not of this one's hang.
void forget_traces() {
  const_cast<CallPage*>(page_of(readable_ranks().front()))->traces_begun_ns = 0;
  world().control().barrier();
}

/// The last rank comes late. The others notice it first, and report it later; one of them leaves
/// the traces of all.
TEST(Watchdog, NoticesBeforeItReports) {
  if (world().size() < 2) GTEST_SKIP() << "nobody to wait for";
  forget_traces();
  Reports told;
  std::atomic<std::int64_t> left{0}, asked{0};
  const int late = world().size() - 1;
  Watchdog::Also also;
  also.notice_after = milliseconds(500);
  also.notice = [&](const Error& report) {
    told.add(fmt::format("notice: {}", report.what()));
    const auto traces = Watchdog::leave_traces_everywhere([&] { ++left; }, milliseconds(100));
    asked += traces != Watchdog::Traces::by_another;
  };
  {
    Watchdog watchdog(
        std::chrono::seconds(2), world().rank(),
        [&](const Error& report) {
          told.add(report.what());
          Watchdog::heartbeat(15);
        },
        also);
    Watchdog::heartbeat(14);
    Watchdog::at("layers.3", "backward");
    if (world().rank() == late) wait_for_step(15);
    world().control().barrier();
  }
  EXPECT_EQ(left, asked);
  EXPECT_GE(all_reduce_scalar(world().control(), asked.load()),
            1);  // more on a machine that stood still
  if (world().rank() == late) return;
  ASSERT_EQ(told.all.size(), 2u);
  EXPECT_THAT(told.all[0], testing::StartsWith("notice: "));
  for (const std::string& text : told.all)
    EXPECT_THAT(text, testing::ContainsRegex(
                          "rank [0-9]+ \\(step 14, begun .* s ago, layers.3 backward\\) hangs in"));
}

TEST(Watchdog, ADetourEndsWhereItBegan) {
  Watchdog::at("layers.3", "weight gradients");
  {
    const Watchdog::Detour detour;
    Watchdog::at("layers.1", "forward");
    EXPECT_EQ(Watchdog::place(), "layers.1 forward");
  }
  EXPECT_EQ(Watchdog::place(), "layers.3 weight gradients");
  Watchdog::at("", "reading data");
  { const Watchdog::Detour detour; }
  EXPECT_EQ(Watchdog::place(), "reading data");
  try {
    const Watchdog::Detour detour;
    Watchdog::at("layers.1", "forward");
    throw std::runtime_error("here");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(Watchdog::place(), "layers.1 forward");
}

/// The last rank comes late, as one that saves to a slow disk, and the others know that it may.
TEST(Watchdog, IsSilentForAsLongAsPatienceSays) {
  if (world().size() < 2) GTEST_SKIP() << "nobody to wait for";
  Reports reports;
  {
    Watchdog watchdog(milliseconds(100), world().rank(),
                      [&](const Error& report) { reports.add(report.what()); });
    const Watchdog::Patience patience(std::chrono::minutes(1));
    const Watchdog::Patience shorter(milliseconds(1));  // which takes nothing away
    if (world().rank() == world().size() - 1) std::this_thread::sleep_for(milliseconds(500));
    world().control().barrier();
  }
  EXPECT_TRUE(reports.all.empty()) << reports.all.front();
}

TEST(Watchdog, IsSilentAndEndsAtOnceWhenAllIsWell) {
  Reports reports;
  auto best = std::chrono::steady_clock::duration::max();
  for (int attempt = 0; attempt < 5; ++attempt) {  // of which a busy machine may delay some
    std::optional<Watchdog> watchdog(std::in_place, std::chrono::hours(1), world().rank(),
                                     [&](const Error& report) { reports.add(report.what()); });
    world().control().barrier();
    const auto begin = std::chrono::steady_clock::now();
    watchdog.reset();
    best = std::min(best, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(best, std::chrono::seconds(10));
  EXPECT_TRUE(reports.all.empty());
  EXPECT_THAT(Watchdog::recent_calls(),
              testing::ContainsRegex("world [0-9]+/[0-9]+: barrier, call [0-9]+: done in .*\n$"));
}

}  // namespace
}  // namespace tessera::comm
