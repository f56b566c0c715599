// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs: what is recorded, and what a launch does.
#include "capture_fixture.hpp"

namespace tessera::sim {
namespace {

TEST_F(Captures, RunWhatWasRecordedAtEachLaunch) {
  begin();
  ASSERT_OK(say(a, '1'));
  ASSERT_OK(say(a, '2'));
  end();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ("", said_);
  ASSERT_OK(launch(a));
  ASSERT_OK(say(a, ' '));
  ASSERT_OK(launch(a));
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ("12 12", said_);
}

TEST_F(Captures, RunOnTheLegacyStream) {
  begin();
  ASSERT_OK(say(a, '1'));
  end();
  ASSERT_OK(launch(nullptr));
  ASSERT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_EQ("1", said_);
}

TEST_F(Captures, FollowOtherStreamsByEvents) {
  Gate gate;
  begin();
  ASSERT_OK(say(a, '1'));
  follow(b, a);
  ASSERT_OK(enqueue(b, "gate", {}, gate.work()));
  ASSERT_OK(say(b, '2'));
  follow(a, b);
  ASSERT_OK(say(a, '3'));
  end();
  ASSERT_OK(launch(a));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a));
  EXPECT_OK(cudaStreamQuery(b));  // no branch any more
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ("123", said_);
}

TEST_F(Captures, CopyWhatIsThereAtTheLaunch) {
  std::byte *const pinned = new_pinned(1), *const device = new_memory(1);
  begin();
  ASSERT_OK(cudaMemcpyAsync(device, pinned, 1, cudaMemcpyHostToDevice, a));
  end();
  for (const std::byte value : {std::byte{3}, std::byte{5}}) {
    *pinned = value;
    ASSERT_OK(launch(a));
    ASSERT_OK(cudaStreamSynchronize(a));
    EXPECT_EQ(value, bytes_of(device, 1)[0]);
  }
  ASSERT_OK(cudaFree(device));
  ASSERT_OK(cudaFreeHost(pinned));
}

TEST_F(Captures, AreFreshAccessesAtEachLaunch) {
  std::byte* const memory = new_memory(64);
  begin();
  ASSERT_OK(touch(a, "captured", {writes(memory, 64)}));
  end();
  ASSERT_OK(touch(b, "other", {writes(memory, 64)}));  // a capture is no access
  follow(a, b);
  ASSERT_OK(launch(a));
  EXPECT_TRUE(races().empty());
  EXPECT_EQ(cudaErrorLaunchFailure, touch(b, "late", {reads(memory, 64)}));
  ASSERT_EQ(1U, races().size());
  EXPECT_NE(std::string::npos, races()[0].find("late")) << races()[0];
  EXPECT_NE(std::string::npos, races()[0].find("captured")) << races()[0];
  forget_races();
  EXPECT_OK(cudaFree(memory));
}

TEST_F(Captures, AreOrderedByTheirEventsOnly) {
  std::byte* const memory = new_memory(64);
  begin();
  follow(b, a);
  ASSERT_OK(touch(b, "branch", {writes(memory, 64)}));
  ASSERT_OK(touch(a, "origin", {reads(memory, 64)}));
  follow(a, b);
  end();
  EXPECT_EQ(cudaErrorLaunchFailure, launch(a));
  ASSERT_EQ(1U, races().size());
  EXPECT_NE(std::string::npos, races()[0].find("origin")) << races()[0];
  forget_races();
  EXPECT_OK(cudaFree(memory));
}

TEST_F(Captures, CannotUseMemoryThatIsGone) {
  std::byte* const memory = new_memory(64);
  begin();
  ASSERT_OK(touch(a, "task", {writes(memory, 64)}));
  end();
  ASSERT_OK(cudaFree(memory));
  EXPECT_EQ(cudaErrorIllegalAddress, launch(a));
  forget_races();
}

TEST_F(Captures, CallOtherLibrariesWithTheStreamsOfTheLaunch) {
  std::vector<cudaStream_t> got;
  begin();
  follow(b, a);
  const cudaStream_t both[] = {a, b};
  EXPECT_TRUE(is_capturing(a) && is_capturing(b) && !is_capturing(nullptr));
  ASSERT_OK(capture_call(both, [&](const auto& stream_of) {
    EXPECT_TRUE(is_launching_graph());
    got = {stream_of(a), stream_of(b)};
    return cudaSuccess;
  }));
  follow(a, b);
  end();
  EXPECT_TRUE(got.empty());
  ASSERT_OK(launch(nullptr));
  ASSERT_EQ(2U, got.size());
  EXPECT_EQ(nullptr, got[0]);
  EXPECT_NE(b, got[1]);
  EXPECT_FALSE(is_launching_graph());
}

TEST_F(Captures, SayThatTheyAreInProgress) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
  unsigned long long id = 0;
  begin();
  ASSERT_OK(cudaStreamGetCaptureInfo(a, &status, &id, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(cudaStreamCaptureStatusActive, status);
  EXPECT_NE(0U, id);
  ASSERT_OK(cudaStreamIsCapturing(b, &status));
  EXPECT_EQ(cudaStreamCaptureStatusNone, status);
  end();
  ASSERT_OK(cudaStreamIsCapturing(a, &status));
  EXPECT_EQ(cudaStreamCaptureStatusNone, status);
}

TEST_F(Captures, CountAsOneLaunch) {
  std::byte* const memory = new_memory(2);
  begin();
  for (int i = 0; i < 3; ++i) ASSERT_OK(cudaMemsetAsync(memory, i, 1, a));
  end();
  const auto memsets = [] {
    const std::string lines = work_by_name();
    return lines.substr(lines.find("launch memset"), 16);
  };
  const std::string before = memsets();
  ASSERT_OK(launch(a));
  EXPECT_EQ(before, memsets());
  EXPECT_NE(std::string::npos, work_by_name().find("launch graph "));
  ASSERT_OK(cudaFree(memory));
}

}  // namespace
}  // namespace tessera::sim
