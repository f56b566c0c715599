// SPDX-License-Identifier: Apache-2.0
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

using Streams = SimTest;

TEST_F(Streams, RunTasksInOrderAndAfterTheCall) {
  Gate gate;
  std::vector<int> order;
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  for (int i = 0; i < 100; ++i)
    ASSERT_OK(enqueue(a, "task", {}, [&order, i] {
      order.push_back(i);
      return cudaSuccess;
    }));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a));
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_OK(cudaStreamQuery(a));
  ASSERT_EQ(100U, order.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Streams, DoNotWaitForEachOther) {
  Gate gate;
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(enqueue(nullptr, "gate", {}, gate.work()));
  EXPECT_OK(enqueue(b, "task", {}, [] { return cudaSuccess; }));
  EXPECT_OK(cudaStreamSynchronize(b));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(nullptr));
  gate.open();
}

TEST_F(Streams, RunAtOnceOnTheCallingThread) {
  std::thread::id ran_on;
  ASSERT_OK(run_at_once(a, "task", {}, [&] {
    ran_on = std::this_thread::get_id();
    return cudaSuccess;
  }));
  EXPECT_EQ(std::this_thread::get_id(), ran_on);
}

TEST_F(Streams, RunAtOnceAfterEarlierTasksAndBeforeLaterOnes) {
  Gate gate;
  std::string order;
  const auto say = [&order](char what) {
    return [&order, what] {
      order += what;
      return cudaSuccess;
    };
  };
  const auto at_once = [&] {
    std::thread([&] { EXPECT_OK(enqueue(a, "later", {}, say('3'))); }).join();
    // a later task that begins too early shows
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    order += '2';
    return cudaSuccess;
  };
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(enqueue(a, "earlier", {}, say('1')));
  std::thread opener([&] { gate.open(); });
  ASSERT_OK(run_at_once(a, "at once", {}, at_once));
  opener.join();
  ASSERT_OK(cudaStreamSynchronize(a));
  ASSERT_OK(run_at_once(a, "at once", {}, at_once));
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ("12323", order);
}

TEST_F(Streams, RunWhatTheirOwnTasksIssueWhereItStands) {
  std::string order;
  const auto nest = [&] {
    EXPECT_OK(run_at_once(a, "inner", {}, [&] {
      order += 'r';
      return cudaSuccess;
    }));
    EXPECT_OK(enqueue(a, "inner", {}, [&] {
      order += 'e';
      return cudaSuccess;
    }));
    EXPECT_OK(cudaStreamSynchronize(a));
    order += '.';
    return cudaSuccess;
  };
  ASSERT_OK(enqueue(a, "outer", {}, nest));
  ASSERT_OK(cudaStreamSynchronize(a));
  ASSERT_OK(run_at_once(a, "outer", {}, nest));
  EXPECT_EQ("re.re.", order);
}

TEST_F(Streams, LeaveExceptionsOfTasksAtOnceToTheCaller) {
  EXPECT_THROW(
      run_at_once(a, "task", {}, []() -> cudaError_t { throw std::runtime_error("sizes differ"); }),
      std::runtime_error);
  EXPECT_OK(run_at_once(a, "task", {}, [] { return cudaSuccess; }));
  EXPECT_OK(cudaStreamSynchronize(a));
}

TEST_F(Streams, FinishTheirTasksAfterTheyAreDestroyed) {
  Gate gate;
  std::atomic<bool> ran = false;
  const cudaStream_t c = new_stream();
  ASSERT_OK(enqueue(c, "gate", {}, gate.work()));
  ASSERT_OK(enqueue(c, "task", {}, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a wait that is missing shows
    ran = true;
    return cudaSuccess;
  }));
  ASSERT_OK(cudaStreamDestroy(c));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(c));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, enqueue(c, "task", {}, [] { return cudaSuccess; }));
  gate.open();
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_TRUE(ran);
}

TEST(StreamsDeathTest, ThatWaitForTheDefaultStreamAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        cudaStream_t stream = nullptr;
        EXPECT_EQ(cudaErrorNotSupported, cudaStreamCreate(&stream));
        EXPECT_EQ(cudaErrorNotSupported, cudaGetLastError());
        EXPECT_OK(cudaGetLastError());
        EXPECT_EQ(cudaErrorNotSupported, cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0),
      "does not support streams that wait for the default stream: .*cudaStreamNonBlocking");
}

TEST_F(Streams, RunHostFunctions) {
  std::atomic<int> called = 0;
  ASSERT_OK(cudaLaunchHostFunc(
      a, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &called));
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(1, called);
}

TEST_F(Streams, AreNotCaptured) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  ASSERT_OK(cudaStreamIsCapturing(a, &status));
  EXPECT_EQ(cudaStreamCaptureStatusNone, status);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(cudaStreamCaptureModeGlobal, mode);
  ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(cudaStreamCaptureModeRelaxed, mode);
}

}  // namespace
}  // namespace tessera::sim
