// SPDX-License-Identifier: Apache-2.0
// An allocation that fails while the GPU waits for another rank: LibTorch's allocator gives unused
// memory back, and CUDA waits for the whole GPU before it takes it.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "failed_allocation.hpp"
#include "sim/sim.hpp"

namespace tessera::train {
namespace {

using std::chrono::seconds;

const auto device_bytes = at::TensorOptions(at::kByte).device(at::kCUDA);

/// A stream that waits until this is destroyed.
class WaitingStream {
 public:
  WaitingStream() {
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    EXPECT_EQ(sim::enqueue(stream_, "a receive", {},
                           [peer = peer_.get_future().share()] {
                             peer.wait();
                             return cudaSuccess;
                           }),
              cudaSuccess);
  }
  ~WaitingStream() {
    peer_.set_value();
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  WaitingStream(const WaitingStream&) = delete;

 private:
  std::promise<void> peer_;
  cudaStream_t stream_ = nullptr;
};

TEST(HeldAllocation, IsSeenByAnotherThread) {
  constexpr std::int64_t kSegment = 32 << 20, kTooMuch = std::int64_t{1} << 50;
  follow_device_memory();
  at::empty({kSegment}, device_bytes);  // unused from now on
  EXPECT_FALSE(held_allocation(seconds(0)));
  std::thread allocates;
  {
    const WaitingStream waiting;
    allocates = std::thread(
        [] { EXPECT_THROW(at::empty({kTooMuch}, device_bytes), c10::OutOfMemoryError); });
    const auto deadline = std::chrono::steady_clock::now() + seconds(30);
    while (!held_allocation(seconds(1)) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto held = held_allocation(seconds(1));
    ASSERT_TRUE(held);
    EXPECT_GT(held->total, kSegment);
    EXPECT_FALSE(held_allocation(seconds(3600)));
  }
  allocates.join();
  EXPECT_FALSE(held_allocation(seconds(0)));
  EXPECT_EQ(failed_allocation()->wanted, kTooMuch);
}

/// As at the end of a graph, before a checkpoint is written for a minute.
TEST(HeldAllocation, IsNoneWhereUnusedMemoryIsGivenBackUnasked) {
  follow_device_memory();
  at::empty({32 << 20}, device_bytes);
  c10::cuda::CUDACachingAllocator::emptyCache();
  EXPECT_FALSE(held_allocation(seconds(0)));
}

}  // namespace
}  // namespace tessera::train
