// SPDX-License-Identifier: Apache-2.0
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

using Errors = SimTest;

TEST_F(Errors, OfATaskStayWithTheDevice) {
  testing::internal::CaptureStderr();
  std::atomic<bool> ran = false;
  ASSERT_OK(enqueue(a, "a bad kernel", {}, [] { return cudaErrorIllegalAddress; }));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(a));
  EXPECT_EQ(cudaErrorIllegalAddress, enqueue(b, "later", {}, [&] {
              ran = true;
              return cudaSuccess;
            }));
  void* data = nullptr;
  EXPECT_EQ(cudaErrorIllegalAddress, cudaMalloc(&data, 1));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
  EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
  EXPECT_FALSE(ran);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, said.find("a bad kernel on stream ")) << said;
  EXPECT_NE(std::string::npos, said.find("illegal memory access")) << said;
  EXPECT_EQ(1, std::count(said.begin(), said.end(), '\n')) << said;
  forget_races();
  EXPECT_OK(cudaMalloc(&data, 1));
  EXPECT_OK(cudaFree(data));
}

TEST_F(Errors, LeaveOutTasksThatWaitAndFinishEvents) {
  const cudaEvent_t event = new_event();
  Gate gate;
  std::atomic<bool> ran = false;
  testing::internal::CaptureStderr();
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(enqueue(a, "bad", {}, [] { return cudaErrorAssert; }));
  ASSERT_OK(enqueue(a, "later", {}, [&] {
    ran = true;
    return cudaSuccess;
  }));
  ASSERT_OK(cudaEventRecord(event, a));
  ASSERT_OK(cudaStreamWaitEvent(b, event, 0));
  gate.open();
  EXPECT_EQ(cudaErrorAssert, cudaStreamSynchronize(a));
  forget_races();
  EXPECT_OK(cudaStreamSynchronize(b));
  EXPECT_FALSE(ran);
  testing::internal::GetCapturedStderr();
  EXPECT_OK(cudaEventDestroy(event));
}

TEST_F(Errors, AreTasksThatThrow) {
  testing::internal::CaptureStderr();
  ASSERT_OK(
      enqueue(a, "task", {}, []() -> cudaError_t { throw std::runtime_error("sizes differ"); }));
  EXPECT_EQ(cudaErrorLaunchFailure, cudaStreamSynchronize(a));
  EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find("sizes differ"));
  forget_races();
}

TEST_F(Errors, CanBeMade) {
  testing::internal::CaptureStderr();
  fail_device(cudaErrorECCUncorrectable, "a cosmic ray");
  fail_device(cudaErrorAssert, "another one");
  EXPECT_EQ(cudaErrorECCUncorrectable, cudaDeviceSynchronize());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, said.find("a cosmic ray"));
  EXPECT_EQ(std::string::npos, said.find("another one"));
  forget_races();
}

TEST_F(Errors, HaveNames) {
  EXPECT_STREQ("cudaErrorMemoryAllocation", cudaGetErrorName(cudaErrorMemoryAllocation));
  EXPECT_STREQ("out of memory", cudaGetErrorString(cudaErrorMemoryAllocation));
  EXPECT_STREQ("unrecognized error code", cudaGetErrorName(static_cast<cudaError_t>(12345)));
}

TEST_F(Errors, OfAThreadAreItsOwn) {
  EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(7));
  std::thread([] { EXPECT_OK(cudaGetLastError()); }).join();
  EXPECT_EQ(cudaErrorInvalidDevice, cudaPeekAtLastError());
  EXPECT_EQ(cudaErrorInvalidDevice, cudaGetLastError());
  EXPECT_OK(cudaGetLastError());
}

TEST_F(Errors, NameWhatIsNotSupportedOnce) {
  void* data = nullptr;
  EXPECT_EQ(cudaErrorNotSupported, cudaMallocAsync(&data, 1, a));
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaErrorNotSupported, cudaMallocAsync(&data, 1, a));
  EXPECT_EQ("", testing::internal::GetCapturedStderr());
}

TEST(ErrorsDeathTest, NameWhatIsNotSupported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        cudaFreeAsync(nullptr, nullptr);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "tessera-sim: the simulated GPU does not support cudaFreeAsync");
}

TEST_F(Errors, ComeWithUnknownHandles) {
  const auto stream = reinterpret_cast<cudaStream_t>(this);
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventDestroy(reinterpret_cast<cudaEvent_t>(this)));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, touch(stream, "task", {}));
}

}  // namespace
}  // namespace tessera::sim
