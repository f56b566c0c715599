// SPDX-License-Identifier: Apache-2.0
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

class Events : public SimTest {
 protected:
  void TearDown() override {
    EXPECT_OK(cudaEventDestroy(event));
    SimTest::TearDown();
  }
  cudaEvent_t event = new_event();
};

TEST_F(Events, ThatWereNeverRecordedAreDone) {
  EXPECT_OK(cudaEventQuery(event));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaStreamWaitEvent(a, event, 0));
  EXPECT_OK(cudaStreamSynchronize(a));
}

TEST_F(Events, AreDoneWhenTheStreamHasComeThere) {
  Gate before, after;
  ASSERT_OK(enqueue(a, "before", {}, before.work()));
  ASSERT_OK(cudaEventRecord(event, a));
  ASSERT_OK(enqueue(a, "after", {}, after.work()));
  EXPECT_EQ(cudaErrorNotReady, cudaEventQuery(event));
  EXPECT_OK(cudaGetLastError());  // not ready is no error
  before.open();
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaEventQuery(event));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a));
  after.open();
}

TEST_F(Events, HoldOtherStreams) {
  Gate gate;
  std::atomic<bool> open = false, seen = false;
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(cudaEventRecord(event, a));
  ASSERT_OK(cudaStreamWaitEvent(b, event, 0));
  ASSERT_OK(enqueue(b, "reader", {}, [&] {
    seen = open.load();
    return cudaSuccess;
  }));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(b));
  open = true;
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(b));
  EXPECT_TRUE(seen);
}

TEST_F(Events, KeepForAWaitTheRecordThatWasCurrentThen) {
  Gate first, second;
  ASSERT_OK(enqueue(a, "first", {}, first.work()));
  ASSERT_OK(cudaEventRecord(event, a));
  ASSERT_OK(cudaStreamWaitEvent(b, event, 0));
  ASSERT_OK(enqueue(a, "second", {}, second.work()));
  ASSERT_OK(cudaEventRecord(event, a));
  first.open();
  EXPECT_OK(cudaStreamSynchronize(b));  // though the second record is not done
  EXPECT_EQ(cudaErrorNotReady, cudaEventQuery(event));
  second.open();
  EXPECT_OK(cudaEventSynchronize(event));
}

TEST_F(Events, DestroyedBeforeTheyAreDoneStillHoldWhoWaits) {
  Gate gate;
  const cudaEvent_t brief = new_event();
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(cudaEventRecord(brief, a));
  ASSERT_OK(cudaStreamWaitEvent(b, brief, 0));
  ASSERT_OK(cudaEventDestroy(brief));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(b));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventQuery(brief));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventRecord(brief, a));
  static_cast<void>(cudaGetLastError());
  gate.open();
}

TEST_F(Events, TellTheTimeBetweenThem) {
  const cudaEvent_t start = new_event(cudaEventDefault), end = new_event(cudaEventDefault);
  float milliseconds = 0;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, end));
  ASSERT_OK(cudaEventRecord(start, a));
  ASSERT_OK(enqueue(a, "sleep", {}, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return cudaSuccess;
  }));
  ASSERT_OK(cudaEventRecord(end, a));
  ASSERT_OK(cudaEventSynchronize(end));
  ASSERT_OK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 5.F);
  ASSERT_OK(cudaEventRecord(event, a));
  EXPECT_EQ(cudaErrorInvalidResourceHandle,
            cudaEventElapsedTime(&milliseconds, start, event));  // has no time
  EXPECT_OK(cudaEventDestroy(start));
  EXPECT_OK(cudaEventDestroy(end));
}

}  // namespace
}  // namespace tessera::sim
