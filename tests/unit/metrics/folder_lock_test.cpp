// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/folder_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "folder_owner.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"

namespace tessera::metrics {
namespace {

using tessera::test::content_of;
using tessera::test::error_if_any;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr FolderLock::Timing kQuick{20ms, 1500ms};

/// Within a time that only a stopped machine exceeds.
bool comes_true(const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!what() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(10ms);
  return what();
}

std::string refusal(const std::filesystem::path& folder) {
  return error_if_any(ExitCode::environment, [&] { const FolderLock lock(folder, kQuick); });
}

/// An owner as a process of another machine would have left it.
FolderOwner elsewhere() {
  FolderOwner owner = FolderOwner::this_process();
  owner.machine = "another boot";
  owner.host = "node7";
  return owner;
}

TEST(FolderLock, ASecondOwnerIsRefusedByName) {
  const TemporaryFolder scratch;
  const FolderLock first(scratch / "run", kQuick);
  const std::string message = refusal(scratch / "run");
  EXPECT_THAT(message, HasSubstr("run is in use by another job (host "));
  EXPECT_THAT(message, HasSubstr(", pid " + std::to_string(::getpid()) + ", since 20"));
  EXPECT_THAT(message, HasSubstr("choose another job.dump_folder"));
}

TEST(FolderLock, IsGivenBackAtTheEnd) {
  const TemporaryFolder scratch;
  { const FolderLock first(scratch / "run", kQuick); }
  EXPECT_EQ(scratch.entries(), 0) << "a folder in which nothing was written is not left behind";
  const FolderLock second(scratch / "run", kQuick);
}

TEST(FolderLock, AKilledOwnersFolderIsTakenOverAtOnce) {
  const TemporaryFolder scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    new FolderLock(scratch / "run", kQuick);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(FolderOwner::parse(content_of(scratch / "run/.owner")).pid, child);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal(scratch / "run"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - began, kQuick.silence) << "nothing to wait for";
}

TEST(FolderLock, AReusedPidIsNotItsFormerOwner) {
  const TemporaryFolder scratch;
  std::filesystem::create_directory(scratch / "run");
  FolderOwner owner = FolderOwner::this_process();
  owner.process_start -= 1;
  put(scratch / "run/.owner", owner.text());
  EXPECT_EQ(refusal(scratch / "run"), "");
}

TEST(FolderLock, ASilentOwnerOnAnotherMachineIsDead) {
  const TemporaryFolder scratch;
  std::filesystem::create_directory(scratch / "run");
  put(scratch / "run/.owner", elsewhere().text());
  const auto began = std::chrono::steady_clock::now();
  const FolderLock lock(scratch / "run", kQuick);
  EXPECT_GE(std::chrono::steady_clock::now() - began, kQuick.silence);
  EXPECT_EQ(FolderOwner::parse(content_of(scratch / "run/.owner")).pid, ::getpid());
}

TEST(FolderLock, AHeartbeatOnAnotherMachineRefuses) {
  const TemporaryFolder scratch;
  std::filesystem::create_directory(scratch / "run");
  const auto file = scratch / "run/.owner";
  put(file, elsewhere().text());
  std::jthread heart([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(20ms))
      std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now());
  });
  EXPECT_THAT(refusal(scratch / "run"), HasSubstr("in use by another job (host node7, pid "));
}

TEST(FolderLock, BeatsWhileItLives) {
  const TemporaryFolder scratch;
  const FolderLock lock(scratch / "run", kQuick);
  const auto before = std::filesystem::last_write_time(scratch / "run/.owner");
  EXPECT_TRUE(comes_true(
      [&] { return std::filesystem::last_write_time(scratch / "run/.owner") > before; }));
}

TEST(FolderLock, AnOwnerThatWasTakenOverLearnsOfIt) {
  const TemporaryFolder scratch;
  const FolderLock lock(scratch / "run", kQuick);
  EXPECT_NO_THROW(lock.check());
  put(scratch / "run/.owner", elsewhere().text());
  EXPECT_TRUE(comes_true([&] {
    try {
      lock.check();
    } catch (const Error& error) {
      return error.code() == ExitCode::environment;
    }
    return false;
  }));
}

TEST(FolderLock, AFileWithoutSenseIsTakenOverToo) {
  const TemporaryFolder scratch;
  std::filesystem::create_directory(scratch / "run");
  put(scratch / "run/.owner", R"({"token": 3, "pid": "x")");
  EXPECT_EQ(refusal(scratch / "run"), "");
}

TEST(FolderOwner, ARequeuedSlurmJobFollowsItself) {
  FolderOwner before = elsewhere(), now = FolderOwner::this_process();
  before.slurm_job = now.slurm_job = "99";
  EXPECT_EQ(is_running(before, now), std::nullopt);
  now.slurm_restart = 1;
  EXPECT_EQ(is_running(before, now), false);
  EXPECT_THAT(before.description(), HasSubstr("host node7, pid "));
  EXPECT_THAT(before.description(), HasSubstr(", Slurm job 99"));
}

TEST(FolderOwner, ReadsWhatItWrites) {
  const FolderOwner owner = FolderOwner::this_process();
  EXPECT_EQ(FolderOwner::parse(owner.text()).text(), owner.text());
  EXPECT_EQ(is_running(owner, owner), true);
}

}  // namespace
}  // namespace tessera::metrics
