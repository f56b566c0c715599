// SPDX-License-Identifier: Apache-2.0
// A training run issues millions of tasks: what the checker keeps must not grow with them.
#include <malloc.h>

#include <random>

#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t memory_bytes = 64 << 20, block_bytes = 64 << 10;
constexpr int steps = 1000, tasks_per_step = 1000;

/// Steps of a pretended trainer: blocks of changing sizes come and go on a compute stream, a side
/// stream reads and writes parts of parameters and of blocks between two events.
class LongRun : public SimTest {
 protected:
  void TearDown() override {
    SimTest::TearDown();
    EXPECT_OK(cudaEventDestroy(event));
    EXPECT_OK(cudaFree(memory));
  }

  cudaError_t run(cudaStream_t stream, const char* what, Access access) {
    return run_at_once(stream, what, {&access, 1}, [] { return cudaSuccess; });
  }
  void order(cudaStream_t first, cudaStream_t second) {
    ASSERT_OK(cudaEventRecord(event, first));
    ASSERT_OK(cudaStreamWaitEvent(second, event, 0));
  }
  void step() {
    for (int task = 0; task < tasks_per_step / 10; ++task) {
      const std::size_t offset = random() % (memory_bytes / 2),
                        size = 512 + random() % block_bytes / 512 * 512;
      std::byte *const parameter = memory + offset, *const block =
                                                        memory + memory_bytes / 2 + offset;
      ASSERT_OK(run(a, "allocation", writes(block, size)));
      for (int i = 0; i < 4; ++i) ASSERT_OK(run(a, "mul", reads(parameter + i * 100, size)));
      order(a, b);
      ASSERT_OK(run(b, "gather", writes(block, size)));
      ASSERT_OK(run(b, "gather", reads(parameter, 100)));
      order(b, a);
      ASSERT_OK(run(a, "add", reads(block, size)));
      ASSERT_OK(run(a, "adamw", writes(parameter + 1000, size)));
      ASSERT_OK(run(a, "free", writes(block, size)));
    }
  }
  /// Bytes that the heap holds after `count` steps more.
  std::int64_t heap_after(int count, bool host_waits) {
    for (int i = 0; i < count && !HasFatalFailure(); ++i) {
      step();
      if (host_waits) {
        EXPECT_OK(cudaStreamSynchronize(a));
      }
    }
    return static_cast<std::int64_t>(mallinfo2().uordblks);
  }

  std::byte* memory = new_memory(memory_bytes);
  cudaEvent_t event = new_event();
  std::mt19937 random{1};
};

constexpr std::int64_t few_bytes = 4 << 20;

TEST_F(LongRun, KeepsLittleWhereTheHostWaits) {
  const std::int64_t early = heap_after(steps / 10, true);
  EXPECT_LT(heap_after(steps - steps / 10, true) - early, few_bytes);
}

/// A million places, each touched once.
TEST_F(LongRun, KeepsLittleOfPlacesThatAreNotUsedAgain) {
  const std::int64_t early = heap_after(0, true);
  for (std::uintptr_t place = 1; place <= 1'000'000; ++place) {
    ASSERT_OK(run(a, "memset", writes(reinterpret_cast<const void*>(place * 4096), 512)));
    if (place % 1000 == 0) {
      EXPECT_OK(cudaStreamSynchronize(a));
    }
  }
  EXPECT_LT(heap_after(0, true) - early, few_bytes);
}

/// Bounded by the number of blocks that there can be.
TEST_F(LongRun, KeepsLittleWhereTheHostNeverWaits) {
  const std::int64_t early = heap_after(steps / 2, false);
  EXPECT_LT(heap_after(steps / 2, false) - early, few_bytes);
}

}  // namespace
}  // namespace tessera::sim
