// SPDX-License-Identifier: Apache-2.0
// What the simulated GPU says to kernels with a fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "planted_kernels.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::test {
namespace {

using ::testing::HasSubstr;

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, count_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }

  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

/// What stderr got, after the device came to an illegal address.
std::string fault_of(const std::function<void()>& launch) {
  ::testing::internal::CaptureStderr();
  launch();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  forget_races();
  return ::testing::internal::GetCapturedStderr();
}

constexpr std::int64_t kRows = 3, kWidth = 10, kStride = 12;

std::string fault_of_rows(Fault fault) {
  const OnDevice<float> in(std::vector<float>(kRows * kStride, 1)),
      out(std::vector<float>(kRows * kStride, 2));
  return fault_of([&] { add_first(in.data(), out.data(), kRows, kWidth, kStride, fault); });
}

TEST(Kernel, RunsOnRowsWithGaps) {
  std::vector<float> values(kRows * kStride);
  std::iota(values.begin(), values.end(), 0.0F);
  const OnDevice<float> in(values), out(std::vector<float>(kRows * kStride, -1));
  add_first(in.data(), out.data(), kRows, kWidth, kStride, Fault::none);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<float> got = out.values();
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t i = 0; i < kStride; ++i) {
      const auto at = static_cast<std::size_t>(row * kStride + i);
      EXPECT_EQ(got[at],
                i < kWidth ? values[at] + values[static_cast<std::size_t>(row * kStride)] : -1)
          << at;
    }
}

TEST(Kernel, ReducesOverItsBlock) {
  std::vector<double> values(2 * 256);
  std::iota(values.begin(), values.end(), 0.0);
  const OnDevice<double> in(values), sums({0, 0});
  sum_blocks(in.data(), sums.data(), 2, Fault::none);
  EXPECT_THAT(sums.values(), ::testing::ElementsAre(255 * 128, 255 * 128 + 256 * 256));
}

TEST(Kernel, AddsAtomically) {
  const OnDevice<unsigned long long> count({0}), parts({0, 0, 0, 0, 0, 0});
  count_threads(count.data(), parts.data(), 3);
  EXPECT_THAT(count.values(), ::testing::ElementsAre(768));
  EXPECT_THAT(parts.values(), ::testing::Each(128));
}

TEST(Kernel, FindsPoisonInSharedMemory) {
  const OnDevice<int> out(std::vector<int>(256));
  read_new_shared_memory(out.data());
  EXPECT_THAT(out.values(), ::testing::Each(-1));
}

TEST(Kernel, SeesACopyAfterWaiting) {
  std::vector<int> numbers(4 * 256);
  std::iota(numbers.begin(), numbers.end(), 0);
  const OnDevice<int> in(numbers), out(std::vector<int>(256));
  copy_behind_threads(in.data(), out.data(), true);
  EXPECT_THAT(out.values(),
              ::testing::AllOf(::testing::Contains(4 * 255), ::testing::Each(::testing::Ge(0))));
  copy_behind_threads(in.data(), out.data(), false);
  EXPECT_THAT(out.values(), ::testing::Each(-1));
}

TEST(KernelFault, WriteBehindARow) {
  EXPECT_THAT(fault_of_rows(Fault::write_behind_a_row),
              HasSubstr("kernel add_first, block 0, thread 10: writes 4 bytes"));
}

TEST(KernelFault, ReadBehindARow) {
  EXPECT_THAT(fault_of_rows(Fault::read_behind_a_row),
              HasSubstr("kernel add_first, block 0, thread 10: reads 4 bytes"));
}

TEST(KernelFault, WriteToAnInput) {
  EXPECT_THAT(fault_of_rows(Fault::write_to_input), HasSubstr("thread 10: writes 4 bytes"));
}

TEST(KernelFault, NoBarrierBeforeReading) {
  const std::string text = fault_of_rows(Fault::no_barrier_before_reading);
  EXPECT_THAT(
      text,
      HasSubstr("byte 0 of shared memory, which thread 0 writes, and no __syncthreads is between"));
}

TEST(KernelFault, BarrierThatSomeThreadsDoNotReach) {
  EXPECT_THAT(fault_of_rows(Fault::barrier_of_some_threads),
              HasSubstr("255 of 256 threads wait in __syncthreads"));
}

TEST(KernelFault, AccessBehindSharedMemory) {
  EXPECT_THAT(fault_of_rows(Fault::shared_overrun),
              HasSubstr("writes byte 32 of 32 bytes of shared memory"));
}

TEST(KernelFault, ShuffleThatALaneDoesNotReach) {
  const OnDevice<double> in(std::vector<double>(256)), sums({0});
  const std::string text =
      fault_of([&] { sum_blocks(in.data(), sums.data(), 1, Fault::shuffle_of_some_lanes); });
  EXPECT_THAT(text, HasSubstr("kernel sum_blocks"));
  EXPECT_THAT(text, HasSubstr("wait"));
}

TEST(KernelFault, HostMemoryAsAnOperand) {
  std::vector<float> on_host(kRows * kStride);
  const OnDevice<float> out(on_host);
  const std::string text =
      fault_of([&] { add_first(on_host.data(), out.data(), kRows, kWidth, kStride, Fault::none); });
  EXPECT_THAT(text, HasSubstr("is not in device memory"));
}

TEST(KernelFault, NoneIsLeftBehind) {
  const OnDevice<int> out(std::vector<int>(256));
  read_new_shared_memory(out.data());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace tessera::sim::test
