// SPDX-License-Identifier: Apache-2.0
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t size = 4096;

class Races : public SimTest {
 protected:
  void SetUp() override { ASSERT_OK(block_allocated(data, size, a)); }
  void TearDown() override {
    EXPECT_OK(cudaEventDestroy(event));
    SimTest::TearDown();
    EXPECT_OK(cudaFree(data));
  }
  void order(cudaStream_t first, cudaStream_t second) {
    EXPECT_OK(cudaEventRecord(event, first));
    EXPECT_OK(cudaStreamWaitEvent(second, event, 0));
  }
  /// What `call` returned must be that of a race that says `words`; the device then goes on.
  void expect_race(cudaError_t returned, const std::string& words) {
    EXPECT_EQ(cudaErrorLaunchFailure, returned);
    EXPECT_EQ(cudaErrorLaunchFailure, cudaDeviceSynchronize());
    ASSERT_EQ(1U, races().size());
    EXPECT_NE(std::string::npos, races()[0].find(words)) << races()[0];
    EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find(races()[0]));
    forget_races();
  }
  template <class Call>
  void expect_race_in(Call call, const std::string& words) {
    testing::internal::CaptureStderr();
    expect_race(call(), words);
  }
  std::byte* data = new_memory(size);
  cudaEvent_t event = new_event();
};

TEST_F(Races, ReadAfterWrite) {
  EXPECT_OK(touch(a, "gather", {writes(data, 100)}));
  expect_race_in([&] { return touch(b, "mul", {reads(data + 40, 100)}); }, "race: mul on stream ");
}

TEST_F(Races, AreDescribed) {
  order(a, b);
  EXPECT_OK(touch(b, "gather", {writes(data, 100)}));
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaErrorLaunchFailure, touch(nullptr, "mul", {reads(data + 40, 100)}));
  testing::internal::GetCapturedStderr();
  char block[40];
  std::snprintf(block, sizeof block, "%p", static_cast<void*>(data));
  ASSERT_EQ(1U, races().size());
  const std::string expected =
      std::string("race: mul on the default stream reads bytes 40..100 of block ") + block +
      " (4096 bytes) that gather on stream ";
  EXPECT_EQ(0U, races()[0].find(expected)) << races()[0];
  EXPECT_NE(std::string::npos, races()[0].find(" writes; no event orders them")) << races()[0];
  forget_races();
}

TEST_F(Races, WriteAfterWrite) {
  order(a, b);
  EXPECT_OK(touch(a, "first", {writes(data, 100)}));
  expect_race_in([&] { return touch(b, "second", {writes(data + 99, 1)}); }, "bytes 99..100");
}

TEST_F(Races, WriteAfterRead) {
  order(a, b);
  EXPECT_OK(touch(a, "first", {reads(data, 100)}));
  EXPECT_OK(touch(b, "also reads", {reads(data, 100)}));
  expect_race_in([&] { return touch(b, "update", {writes(data, 10)}); }, "that first on stream ");
}

TEST_F(Races, WriteAfterOneOfManyReads) {
  order(a, b);
  EXPECT_OK(touch(b, "side", {reads(data + 50, 10)}));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_OK(touch(a, "main", {reads(data + i, 1)}));
  expect_race_in([&] { return touch(a, "update", {writes(data, size)}); }, "that side on stream ");
}

TEST_F(Races, FreeWhileASideStreamReads) {
  order(a, b);
  EXPECT_OK(touch(b, "reduce_scatter", {reads(data, 100)}));
  expect_race_in([&] { return block_freed(data, size, a); }, "race: free on stream ");
}

TEST_F(Races, NoWaitBeforeACopy) {
  std::byte* const pinned = new_pinned(size);
  EXPECT_OK(touch(a, "adamw", {writes(data, size)}));
  expect_race_in([&] { return cudaMemcpyAsync(pinned, data, size, cudaMemcpyDeviceToHost, b); },
                 "race: memcpy on ");
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(Races, NoWaitAfterACopy) {
  std::byte* const pinned = new_pinned(size);
  order(a, b);
  EXPECT_OK(cudaMemcpyAsync(pinned, data, size, cudaMemcpyDeviceToHost, b));
  expect_race_in([&] { return touch(a, "adamw", {writes(data, size)}); }, "that memcpy on stream ");
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(Races, InPinnedMemory) {
  std::byte* const pinned = new_pinned(size);
  order(a, b);
  EXPECT_OK(cudaMemcpyAsync(pinned, data, size, cudaMemcpyDeviceToHost, b));
  expect_race_in([&] { return cudaMemcpyAsync(pinned, data, size, cudaMemcpyDeviceToHost, a); },
                 "memcpy");
  EXPECT_OK(cudaFreeHost(pinned));
}

/// As MPI would send it.
TEST_F(Races, ByTheHostThatHasNotWaited) {
  std::byte* const pinned = new_pinned(size);
  order(a, b);
  EXPECT_OK(cudaMemcpyAsync(pinned, data, size, cudaMemcpyDeviceToHost, b));
  const auto send = [&] {
    host_accesses("MPI_Isend", reads(pinned, 10));
    return cudaPeekAtLastError() == cudaSuccess ? cudaStreamSynchronize(b) : cudaErrorLaunchFailure;
  };
  expect_race_in(send, "race: MPI_Isend on the host reads bytes 0..10");
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(Races, NotByTheHostThatHasWaited) {
  std::byte* const pinned = new_pinned(size);
  order(a, b);
  EXPECT_OK(cudaMemcpyAsync(pinned, data, size, cudaMemcpyDeviceToHost, b));
  EXPECT_OK(cudaStreamSynchronize(b));
  host_accesses("MPI_Irecv", writes(pinned, 10));
  EXPECT_OK(cudaMemcpyAsync(data, pinned, size, cudaMemcpyHostToDevice, a));
  host_accesses("MPI_Isend", reads(pinned, 10));  // beside another reader
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(Races, ThoughTheFirstTaskIsLongDone) {
  EXPECT_OK(run_at_once(a, "first", std::vector{writes(data, 100)}, [] { return cudaSuccess; }));
  expect_race_in([&] { return touch(b, "second", {reads(data, 100)}); }, "that first on stream ");
}

TEST_F(Races, ThoughAQueryHasSeenTheFirstTaskDone) {
  EXPECT_OK(run_at_once(a, "first", std::vector{writes(data, 100)}, [] { return cudaSuccess; }));
  EXPECT_OK(cudaEventRecord(event, a));
  EXPECT_OK(cudaEventQuery(event));
  EXPECT_OK(cudaStreamQuery(a));
  expect_race_in([&] { return touch(b, "second", {reads(data, 100)}); }, "that first on stream ");
}

TEST_F(Races, WaitForAnEventThatWasRecordedTooEarly) {
  order(a, b);
  EXPECT_OK(cudaEventRecord(event, a));
  EXPECT_OK(touch(a, "first", {writes(data, 100)}));
  EXPECT_OK(cudaStreamWaitEvent(b, event, 0));
  expect_race_in([&] { return touch(b, "second", {reads(data, 100)}); }, "that first on stream ");
}

TEST_F(Races, WaitForAnEventOfAnotherStream) {
  EXPECT_OK(touch(a, "first", {writes(data, 100)}));
  order(nullptr, b);
  expect_race_in([&] { return touch(b, "second", {reads(data, 100)}); }, "that first on stream ");
}

TEST_F(Races, WithAStreamThatIsGone) {
  const cudaStream_t gone = new_stream();
  order(a, gone);
  EXPECT_OK(touch(gone, "first", {writes(data, 100)}));
  EXPECT_OK(cudaStreamDestroy(gone));
  expect_race_in([&] { return touch(b, "second", {reads(data, 100)}); }, "that first on stream ");
}

TEST_F(Races, TaskIsNotRun) {
  bool ran = false;
  EXPECT_OK(touch(a, "first", {writes(data, 100)}));
  const auto second = [&] {
    return run_at_once(b, "second", std::vector{writes(data, 100)}, [&] {
      ran = true;
      return cudaSuccess;
    });
  };
  expect_race_in(second, "second");
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tessera::sim
