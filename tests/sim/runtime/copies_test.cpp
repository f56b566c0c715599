// SPDX-License-Identifier: Apache-2.0
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t size = 1000;

class Copies : public SimTest {
 protected:
  void SetUp() override { std::memset(pinned, 1, size); }
  void TearDown() override {
    EXPECT_OK(cudaFreeHost(pinned));
    EXPECT_OK(cudaFree(device));
    SimTest::TearDown();
  }
  /// Holds stream a until gate.open().
  void close() { ASSERT_OK(enqueue(a, "gate", {}, gate.work())); }

  Gate gate;
  std::byte *device = new_memory(size), *pinned = new_pinned(size);
  std::vector<std::byte> pageable = std::vector<std::byte>(size, std::byte{1});
  const std::vector<std::byte> ones = pageable;
};

TEST_F(Copies, ReadPageableMemoryWhenTheyAreIssued) {
  close();
  ASSERT_OK(cudaMemcpyAsync(device, pageable.data(), size, cudaMemcpyHostToDevice, a));
  std::fill(pageable.begin(), pageable.end(), std::byte{2});
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(ones, bytes_of(device, size));
}

TEST_F(Copies, ReadPinnedMemoryWhenTheyRun) {
  close();
  ASSERT_OK(cudaMemcpyAsync(device, pinned, size, cudaMemcpyHostToDevice, a));
  std::memset(pinned, 2, size);
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(std::vector<std::byte>(size, std::byte{2}), bytes_of(device, size));
}

TEST_F(Copies, IntoPageableMemoryHoldTheCaller) {
  ASSERT_OK(cudaMemset(device, 7, size));
  ASSERT_OK(cudaDeviceSynchronize());
  close();
  std::thread opener([this] { gate.open(); });
  ASSERT_OK(cudaMemcpyAsync(pageable.data(), device, size, cudaMemcpyDeviceToHost, a));
  EXPECT_EQ(std::vector<std::byte>(size, std::byte{7}), pageable);
  opener.join();
}

TEST_F(Copies, IntoPinnedMemoryDoNot) {
  ASSERT_OK(cudaMemset(device, 7, size));
  ASSERT_OK(cudaDeviceSynchronize());
  close();
  ASSERT_OK(cudaMemcpyAsync(pinned, device, size, cudaMemcpyDeviceToHost, a));
  EXPECT_EQ(std::byte{1}, pinned[0]);
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(std::byte{7}, pinned[size - 1]);
}

TEST_F(Copies, FindOutTheirKind) {
  std::byte* const other = new_memory(size);
  ASSERT_OK(cudaMemcpy(device, pageable.data(), size, cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(other, device, size, cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(pinned, other, size, cudaMemcpyDefault));
  std::vector<std::byte> copy(size);
  ASSERT_OK(cudaMemcpy(copy.data(), pinned, size, cudaMemcpyDefault));
  EXPECT_EQ(ones, copy);
  EXPECT_OK(cudaFree(other));
}

TEST_F(Copies, OfAnotherKindThanTheMemoryAreRefused) {
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy(device, pinned, size, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy(pinned, pageable.data(), size, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection, cudaGetLastError());
}

TEST_F(Copies, PastTheEndAreRefused) {
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy(device + 5000, pinned, size, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy(device, pinned + 4000, size, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset(device + 4000, 0, size));
  EXPECT_OK(cudaMemcpy(device, pinned, 0, cudaMemcpyHostToDevice));
}

TEST_F(Copies, BetweenOverlappingBytesMoveThem) {
  for (std::size_t i = 0; i < size; ++i) pinned[i] = static_cast<std::byte>(i);
  ASSERT_OK(cudaMemcpy(device, pinned, size, cudaMemcpyHostToDevice));
  ASSERT_OK(cudaMemcpy(device + 1, device, size - 1, cudaMemcpyDeviceToDevice));
  const auto moved = bytes_of(device, size);
  EXPECT_EQ(0, std::memcmp(moved.data() + 1, pinned, size - 1));
}

}  // namespace
}  // namespace tessera::sim
