// SPDX-License-Identifier: Apache-2.0
// Programs without a race: the checker says nothing.
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t kBytes = 4096;

class Ordered : public SimTest {
 protected:
  void TearDown() override {
    SimTest::TearDown();
    EXPECT_OK(cudaFree(data));
    EXPECT_OK(cudaEventDestroy(event));
  }
  void order(cudaStream_t first, cudaStream_t second) {
    EXPECT_OK(cudaEventRecord(event, first));
    EXPECT_OK(cudaStreamWaitEvent(second, event, 0));
  }
  std::byte* data = new_memory(kBytes);
  cudaEvent_t event = new_event();
};

TEST_F(Ordered, ByAnEvent) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(touch(a, "write", {writes(data, kBytes)}));
    order(a, b);
    EXPECT_OK(touch(b, "read", {reads(data, kBytes)}));
    EXPECT_OK(touch(a, "also read", {reads(data, kBytes)}));
    order(b, a);
  }
}

TEST_F(Ordered, ThroughAThirdStream) {
  EXPECT_OK(touch(a, "write", {writes(data, kBytes)}));
  order(a, nullptr);
  order(nullptr, b);
  EXPECT_OK(touch(b, "write", {writes(data, kBytes)}));
}

TEST_F(Ordered, ByWaitsOfTheHost) {
  EXPECT_OK(touch(a, "write", {writes(data, kBytes)}));
  EXPECT_OK(cudaStreamSynchronize(a));
  EXPECT_OK(touch(b, "write", {writes(data, kBytes)}));
  EXPECT_OK(cudaEventRecord(event, b));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(touch(a, "write", {writes(data, kBytes)}));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(touch(b, "write", {writes(data, kBytes)}));
}

TEST_F(Ordered, ByACopyThatHoldsTheHost) {
  std::vector<std::byte> host(kBytes);
  EXPECT_OK(touch(a, "write", {writes(data, kBytes)}));
  EXPECT_OK(cudaMemcpyAsync(host.data(), data, kBytes, cudaMemcpyDeviceToHost, a));
  EXPECT_OK(touch(b, "write", {writes(data, kBytes)}));
}

TEST_F(Ordered, AreTasksOnOtherBytes) {
  EXPECT_OK(touch(a, "write", {writes(data, 100)}));
  EXPECT_OK(touch(b, "write", {writes(data + 100, 100)}));
  EXPECT_OK(touch(nullptr, "touch", {writes(data + 200, 0), writes(data, 0), reads(data + 50, 0)}));
  EXPECT_OK(touch(nullptr, "read", {reads(nullptr, 0)}));
  EXPECT_OK(touch(b, "write", {writes(data + 200, 10)}));
}

TEST_F(Ordered, FreeAfterAQuery) {
  EXPECT_OK(block_allocated(data, kBytes, a));
  order(a, b);
  EXPECT_OK(touch(b, "send", {reads(data, kBytes)}));
  EXPECT_OK(cudaEventRecord(event, b));
  while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
  EXPECT_OK(block_freed(data, kBytes, a));
  EXPECT_OK(block_allocated(data, kBytes, a));
}

TEST_F(Ordered, MemoryThatWasFreedAndIsNew) {
  EXPECT_OK(touch(a, "write", {writes(data, kBytes)}));
  EXPECT_OK(cudaFree(data));
  data = new_memory(kBytes);
  EXPECT_OK(touch(b, "write", {writes(data, kBytes)}));
}

TEST_F(Ordered, AfterStreamsThatAreGone) {
  for (int i = 0; i < 1000; ++i) {
    const cudaStream_t c = new_stream();
    EXPECT_OK(touch(c, "write", {writes(data, kBytes)}));
    EXPECT_OK(cudaStreamSynchronize(c));
    EXPECT_OK(cudaStreamDestroy(c));
  }
}

}  // namespace
}  // namespace tessera::sim
