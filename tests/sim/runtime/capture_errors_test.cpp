// SPDX-License-Identifier: Apache-2.0
// What CUDA refuses in a capture.
#include "capture_fixture.hpp"

namespace tessera::sim {
namespace {

TEST_F(Captures, NeedAStreamOfTheirOwn) {
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported,
            cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  begin();
  const cudaEvent_t event = new_event();
  EXPECT_OK(cudaEventRecord(event, a));
  EXPECT_EQ(cudaErrorStreamCaptureImplicit, cudaStreamWaitEvent(nullptr, event, 0));
  expect_end(cudaErrorStreamCaptureInvalidated);
  EXPECT_OK(cudaEventDestroy(event));
}

TEST_F(Captures, EndOnceAndWhereTheyBegan) {
  begin();
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  follow(b, a);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(b, &graph));
  std::thread([&] {
    EXPECT_EQ(cudaErrorStreamCaptureWrongThread, cudaStreamEndCapture(a, &graph));
  }).join();
  end();
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamEndCapture(a, &graph));
}

TEST_F(Captures, MustBeJoined) {
  begin();
  follow(b, a);
  ASSERT_OK(say(b, '1'));
  expect_end(cudaErrorStreamCaptureUnjoined);
  ASSERT_OK(say(b, '2'));
  ASSERT_OK(cudaStreamSynchronize(b));
  EXPECT_EQ("2", said_);
}

TEST_F(Captures, CannotWaitForWhatIsOutside) {
  const cudaEvent_t event = new_event();
  ASSERT_OK(cudaEventRecord(event, b));
  begin();
  EXPECT_EQ(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(a, event, 0));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, say(a, '1'));
  expect_end(cudaErrorStreamCaptureInvalidated);
  EXPECT_OK(cudaEventDestroy(event));
}

TEST_F(Captures, DoNotMerge) {
  begin();
  ASSERT_OK(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
  const cudaEvent_t event = new_event();
  ASSERT_OK(cudaEventRecord(event, a));
  EXPECT_EQ(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(b, event, 0));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(b, &graph));
  end();
  EXPECT_EQ(cudaErrorCapturedEvent, cudaStreamWaitEvent(b, event, 0));
  EXPECT_OK(cudaEventDestroy(event));
}

TEST_F(Captures, CannotBeWaitedFor) {
  const cudaEvent_t event = new_event();
  begin();
  ASSERT_OK(cudaEventRecord(event, a));
  EXPECT_EQ(cudaErrorCapturedEvent, cudaEventQuery(event));
  EXPECT_EQ(cudaErrorCapturedEvent, cudaEventSynchronize(event));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(a));
  expect_end(cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(a));
  expect_end(cudaErrorStreamCaptureInvalidated);
  EXPECT_OK(cudaEventDestroy(event));
}

TEST_F(Captures, CannotCopyPageableMemory) {
  std::byte* const device = new_memory(1);
  std::byte host{};
  begin();
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported,
            cudaMemcpyAsync(device, &host, 1, cudaMemcpyHostToDevice, a));
  expect_end(cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported,
            cudaMemcpyAsync(&host, device, 1, cudaMemcpyDeviceToHost, a));
  expect_end(cudaErrorStreamCaptureInvalidated);
  EXPECT_OK(cudaFree(device));
}

/// Of this thread, and of others, by the mode of the capture.
TEST_F(Captures, ForbidCallsThatMayWait) {
  const auto allocate = [] {
    void* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, 1);
    if (error == cudaSuccess) cudaFree(data);
    return error;
  };
  const auto elsewhere = [&] { return std::async(std::launch::async, allocate).get(); };
  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_OK(allocate());
  end();
  ASSERT_OK(cudaGraphExecDestroy(graph_));

  begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_OK(elsewhere());
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_OK(allocate());
  ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, allocate());
  expect_end(cudaErrorStreamCaptureInvalidated);

  begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, elsewhere());
  expect_end(cudaErrorStreamCaptureInvalidated);
  graph_ = nullptr;
}

}  // namespace
}  // namespace tessera::sim
