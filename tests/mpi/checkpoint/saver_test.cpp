// SPDX-License-Identifier: Apache-2.0
// Saving on several ranks while training goes on, and file calls of one rank that fail.
#include "tessera/checkpoint/saver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <vector>

#include "faults/fault_shim.hpp"
#include "mpi/checkpoint/on_ranks.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "unit/checkpoint/stepped.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kMostSteps = 100'000;

class SaverOnRanks : public OnRanks {
 protected:
  SaverOnRanks() {
    log::configure(log::Level::off, "");
    comm::set_check_collectives(true);
  }
  ~SaverOnRanks() override {
    comm::set_check_collectives(false);
    log::configure(log::Level::warning, "");
  }

  /// A step of training: an exchange, and ranks that are not equally fast.
  static void train(Stepped& state) {
    state.set(*state.step() + 1);
    static_cast<void>(comm::all_reduce_scalar(control(), 1.0));
    ::usleep(static_cast<useconds_t>(200 * (1 + rank())));
  }
  std::optional<SaveResult> train_until_saved(Saver& saver, Stepped& state) {
    std::optional<SaveResult> result;
    for (int i = 0; i < kMostSteps && !result; ++i) {
      train(state);
      result = saver.poll();
    }
    return result;
  }
  std::int64_t newest() {
    Stepped blank(-1, rank(), ranks());
    const auto opened = load_newest(control(), folder_, blank.views());
    if (!opened) return -1;
    EXPECT_EQ(blank.step(), opened->step());
    if (rank() == 0) {
      EXPECT_EQ(describe(verify(opened->folder(), true)), "");
    }
    return opened->step();
  }
  /// "" when the work did well; a failure of the test when ranks disagree.
  static std::string message_of(const std::function<void()>& work) {
    std::string message;
    try {
      work();
    } catch (const Error& error) {
      message = error.what();
    }
    faults::disarm();
    for (const std::string& other : comm::all_gather_strings(control(), message))
      EXPECT_EQ(other, message);
    return message;
  }
  void fail_some_calls_of(int failing, bool asynchronous);
};

TEST_F(SaverOnRanks, SavesTheStateAtTheBeginning) {
  Saver saver(control());
  Stepped state(1, rank(), ranks());
  std::int64_t step = 0;
  for (const FileLayout files : {FileLayout::rank, FileLayout::node, FileLayout::single})
    for (const bool wait : {false, true, false}) {
      files_ = files;
      state.set(++step);
      saver.begin(options(), {step}, state.views());
      const auto result = wait ? saver.finish() : train_until_saved(saver, state);
      ASSERT_TRUE(result);
      EXPECT_EQ(newest(), step);
      state.set(1);
    }
}

/// As a GPU's: what is copied arrives late.
class LateCopies final : public CopyEngine {
 public:
  std::byte* reserve(std::size_t bytes) override {
    memory_.assign(bytes, std::byte{0x7f});
    pending_.clear();
    done_ = std::promise<void>();
    return memory_.data();
  }
  void copy(std::byte* to, const void* from, std::size_t bytes) override {
    pending_.push_back([=] { std::memcpy(to, from, bytes); });
  }
  void wait() override {
    ::usleep(20'000);
    for (const auto& copy : pending_) copy();
    done_.set_value();
  }
  /// Until sources may change.
  void hold() { done_.get_future().wait(); }

 private:
  std::vector<std::byte> memory_;
  std::vector<std::function<void()>> pending_;
  std::promise<void> done_;
};

TEST_F(SaverOnRanks, WritesWhatAnEngineCopiesWhenItIsThere) {
  LateCopies engine;
  Saver saver(control(), &engine);
  Stepped state(1, rank(), ranks());
  std::int64_t step = 0;
  for (const FileLayout files : {FileLayout::rank, FileLayout::single})
    for (const bool wait : {false, true}) {
      files_ = files;
      state.set(++step);
      if (wait) {
        saver.save(options(), {step}, state.views());
      } else {
        saver.begin(options(), {step}, state.views());
        engine.hold();
        ASSERT_TRUE(train_until_saved(saver, state));
      }
      EXPECT_EQ(newest(), step);
    }
}

TEST_F(SaverOnRanks, ASlowDiskOfOneRankHoldsNobodyAndAllLearnOfTheEndInOneStep) {
  comm::set_check_collectives(false);  // it waits for the others in each call
  Saver saver(control());
  Stepped state(1, rank(), ranks());
  saver.begin(options(), {1}, state.views());
  ASSERT_TRUE(saver.finish());
  state.set(2);
  // The fifth call of the last rank is in the middle of its file.
  if (rank() == ranks() - 1) faults::arm({folder_.string(), 5, faults::Kind::slow, 0, 6'000'000});
  saver.begin(options(), {2}, state.views());
  int polls = 0;
  std::optional<SaveResult> result;
  while (!result && ++polls < kMostSteps) {
    train(state);
    result = saver.poll();
    const auto all = comm::all_gather_strings(control(), result ? "saved" : "under way");
    EXPECT_EQ(std::count(all.begin(), all.end(), all.front()), ranks());
  }
  EXPECT_GE(faults::disarm().size(), rank() == ranks() - 1 ? 5u : 0u);
  ASSERT_TRUE(result);
  EXPECT_GT(result->seconds, 6);
  EXPECT_LT(result->blocked_seconds, 4);
  EXPECT_GT(polls, 20);
  EXPECT_EQ(newest(), 2);
}

/// Saves over an older checkpoint while the N-th file call of one rank fails: for every third N, or
/// for each where ranks share a file, since then most of them make few calls.
void SaverOnRanks::fail_some_calls_of(int failing, bool asynchronous) {
  std::optional<Saver> saver(std::in_place, control());
  Stepped state(0, rank(), ranks());
  std::int64_t step = 0, good = 0;
  const auto save_next = [&] {
    state.set(++step);
    SaveOptions with = options();
    with.keep_latest_k = 1;
    if (!asynchronous) {
      saver->save(with, {step}, state.views());
    } else {
      saver->begin(with, {step}, state.views());
      EXPECT_TRUE(train_until_saved(*saver, state));
    }
  };
  save_next();
  good = step;
  int failed = 0;
  const bool shared = files_ != FileLayout::rank;
  for (std::int64_t nth = 1; nth <= (shared ? 24 : 40); nth += shared ? 1 : 3) {
    const int error_number = nth % 2 ? EIO : ENOSPC;
    // what the save before has left to do is done then, and no call of it counts
    saver.emplace(control());
    const std::string message = message_of([&] {
      if (rank() == failing) faults::arm({folder_.string(), nth, faults::Kind::fail, error_number});
      save_next();
    });
    const std::int64_t found = newest();
    if (message.empty()) {
      EXPECT_EQ(found, step) << "call " << nth;
    } else {
      EXPECT_THAT(
          message,
          testing::AllOf(HasSubstr(failing == 0 ? "" : fmt::format("rank {}: ", failing)),
                         HasSubstr(folder_.string()), HasSubstr(std::strerror(error_number))));
      EXPECT_TRUE(found == good || found == step) << "call " << nth << ": found " << found;
      ++failed;
    }
    EXPECT_EQ(message_of(save_next), "") << "after call " << nth;
    good = step;
    EXPECT_EQ(newest(), good) << "after call " << nth;
  }
  EXPECT_GE(failed, 3);
}

TEST_F(SaverOnRanks, CallsOfTheFirstRankFail) { fail_some_calls_of(0, false); }
TEST_F(SaverOnRanks, CallsOfTheLastRankFail) { fail_some_calls_of(ranks() - 1, false); }
TEST_F(SaverOnRanks, CallsOfTheFirstRankFailInTheBackground) { fail_some_calls_of(0, true); }
TEST_F(SaverOnRanks, CallsOfTheLastRankFailInTheBackground) {
  fail_some_calls_of(ranks() - 1, true);
}

TEST_F(SaverOnRanks, CallsOnASharedFileFail) {
  files_ = FileLayout::single;
  fail_some_calls_of(0, false);
}
TEST_F(SaverOnRanks, CallsOnASharedFileFailInTheBackground) {
  files_ = FileLayout::single;
  fail_some_calls_of(ranks() - 1, true);
}
TEST_F(SaverOnRanks, CallsOnANodesFileFailInTheBackground) {
  files_ = FileLayout::node;
  fail_some_calls_of(0, true);
}

}  // namespace
}  // namespace tessera::checkpoint
