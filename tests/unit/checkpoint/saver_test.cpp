// SPDX-License-Identifier: Apache-2.0
// Saving while training goes on, on one rank.
#include "tessera/checkpoint/saver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "faults/fault_shim.hpp"
#include "stepped.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {
namespace {

using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using testing::HasSubstr;

class SaverTest : public testing::Test {
 protected:
  SaverTest() { log::configure(log::Level::off, ""); }
  ~SaverTest() override { log::configure(log::Level::warning, ""); }
  SaveOptions options() const { return {folder_.path(), "pp0.r0.s0.cp0.tp0", "pp1", "x = 1\n"}; }
  std::int64_t newest() {
    Stepped blank(-1);
    const auto opened = load_newest(*control_, folder_.path(), blank.views());
    if (!opened) return -1;
    EXPECT_EQ(blank.step(), opened->step());
    EXPECT_EQ(describe(verify(opened->folder(), true)), "");
    return opened->step();
  }
  /// Steps of training: each changes every value and polls.
  std::optional<SaveResult> train(Saver& saver, Stepped& state, int steps) {
    for (int i = 0; i < steps; ++i) {
      state.set(*state.step() + 1);
      if (auto result = saver.poll()) return result;
      ::usleep(1000);
    }
    return std::nullopt;
  }
  TemporaryFolder folder_;
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("control");
};

TEST_F(SaverTest, WhatIsSavedIsTheStateAtTheBeginning) {
  Saver saver(*control_);
  Stepped state(1);
  for (const std::int64_t step : {10, 20, 30}) {  // the copy's memory is used again
    state.set(step);
    saver.begin(options(), {step}, state.views());
    EXPECT_TRUE(saver.busy());
    const auto result = train(saver, state, 2000);
    ASSERT_TRUE(result);
    EXPECT_FALSE(saver.busy());
    EXPECT_EQ(result->folder, folder_ / fmt::format("step-{:08}", step));
    EXPECT_EQ(newest(), step);
    EXPECT_GT(result->blocked_seconds, 0);
    EXPECT_FALSE(saver.poll());
    EXPECT_FALSE(saver.finish());
  }
}

TEST_F(SaverTest, FinishWaitsUntilItIsThere) {
  Saver saver(*control_);
  Stepped state(1);
  for (int polls = 0; polls < 4; ++polls) {
    state.set(polls + 1);
    saver.begin(options(), {polls + 1}, state.views());
    auto result = train(saver, state, polls);
    if (!result) result = saver.finish();
    ASSERT_TRUE(result);
    EXPECT_EQ(newest(), polls + 1);
  }
}

TEST_F(SaverTest, AnotherSizeOfStateFits) {
  Saver saver(*control_);
  for (const std::int64_t rows : {7, 70'000, 3}) {
    const TemporaryFolder other;
    SaveOptions with = options();
    with.folder = other.path();
    Stepped state(5, 0, 1, rows);
    saver.begin(with, {5}, state.views());
    state.set(6);
    ASSERT_TRUE(saver.finish());
    Stepped blank(-1, 0, 1, rows);
    ASSERT_TRUE(load_newest(*control_, other.path(), blank.views()));
    EXPECT_EQ(blank.step(), 5);
  }
}

TEST_F(SaverTest, AStepThatIsThereIsKept) {
  Saver saver(*control_);
  Stepped state(1);
  saver.save(options(), {1}, state.views());
  saver.begin(options(), {1}, state.views());
  const auto polled = saver.poll();
  ASSERT_TRUE(polled);
  EXPECT_TRUE(polled->kept_existing);
  saver.begin(options(), {1}, state.views());
  EXPECT_TRUE(saver.finish()->kept_existing);
  EXPECT_TRUE(saver.save(options(), {1}, state.views()).kept_existing);
}

TEST_F(SaverTest, AFailureInTheBackgroundComesOutOnceAndTheNextSaveWorks) {
  Stepped state(1);
  faults::arm({folder_.path().string(), 0, faults::Kind::none});
  save(*control_, options(), {1}, state.views());
  const auto undisturbed = faults::disarm();
  const auto at =
      std::find_if(undisturbed.begin(), undisturbed.end(), [](const faults::Call& call) {
        return call.name.starts_with("pwrite") && call.path.find("shard-") != std::string::npos;
      });
  const std::int64_t nth = at - undisturbed.begin() + 1;
  Saver saver(*control_);
  const auto failing = [&](const std::function<void()>& go_on) {
    std::string message;
    faults::arm({folder_.path().string(), nth, faults::Kind::fail, EIO});
    try {
      saver.begin(options(), {2}, state.views());
      go_on();
    } catch (const Error& error) {
      message = error.what();
      EXPECT_EQ(error.code(), ExitCode::checkpoint);
    }
    faults::disarm();
    return message;
  };
  EXPECT_THAT(failing([&] { train(saver, state, 2000); }),
              testing::AllOf(HasSubstr("shard-"), HasSubstr("Input/output error")));
  EXPECT_FALSE(saver.busy());
  EXPECT_FALSE(saver.poll());
  EXPECT_THAT(failing([&] { saver.finish(); }), HasSubstr("Input/output error"));
  EXPECT_FALSE(saver.finish());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()),
            2);  // LATEST and step 1
  state.set(3);
  saver.begin(options(), {3}, state.views());
  EXPECT_TRUE(saver.finish());
  EXPECT_EQ(newest(), 3);
}

TEST_F(SaverTest, ASaverThatGoesAwayDropsItsSave) {
  Stepped state(1);
  {
    Saver saver(*control_);
    saver.save(options(), {1}, state.views());
    saver.begin(options(), {2}, state.views());
  }
  EXPECT_EQ(newest(), 1);
  EXPECT_EQ(folder_.entries(), 2u) << "step 1 and LATEST; what is not whole would fill the disk";
}

TEST_F(SaverTest, TwoAtOnceAreABug) {
  Saver saver(*control_);
  Stepped state(1);
  saver.begin(options(), {1}, state.views());
  EXPECT_THROW(saver.begin(options(), {2}, state.views()), ContractViolation);
  EXPECT_TRUE(saver.finish());
}

TEST_F(SaverTest, SaversAtTheSameTimeTakeTurnsInLibhdf5) {
  std::vector<std::unique_ptr<Saver>> savers;
  Stepped state(1);
  for (int round = 1; round <= 5; ++round) {
    state.set(round);
    for (int i = 0; i < 4; ++i) {
      if (round == 1) savers.push_back(std::make_unique<Saver>(*control_));
      SaveOptions with = options();
      with.folder /= std::to_string(i);
      savers[static_cast<std::size_t>(i)]->begin(with, {round}, state.views());
    }
    for (const auto& saver : savers) EXPECT_TRUE(saver->finish());
  }
  savers.clear();
  for (int i = 0; i < 4; ++i)
    for (const StepFolder& step : list_steps(folder_ / std::to_string(i))) {
      EXPECT_EQ(describe(verify(step.path, true)), "");
      EXPECT_TRUE(fs::exists(step.path / "index.h5"));
    }
}

TEST_F(SaverTest, TheCommitDoesNotWaitForTheIndex) {
  Saver saver(*control_);
  Stepped state(1);
  faults::arm({folder_.path().string(), 0, faults::Kind::none});
  saver.begin(options(), {1}, state.views());
  ASSERT_TRUE(saver.finish());
  saver.begin(options(), {2}, state.views());  // waits for what was left to do
  const auto calls = faults::disarm();
  std::size_t commit = 0, index = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].to == (folder_ / "step-00000001").string()) commit = i;
    if (index == 0 && calls[i].path.find("index.h5") != std::string::npos) index = i;
  }
  EXPECT_GT(commit, 0u);
  EXPECT_GT(index, commit);
  EXPECT_TRUE(fs::exists(folder_ / "step-00000001/index.h5"));
}

}  // namespace
}  // namespace tessera::checkpoint
