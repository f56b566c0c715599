// SPDX-License-Identifier: Apache-2.0
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t kCopiedBytes = 1000;

class Copies : public SimTest {
 protected:
  void SetUp() override { std::memset(pinned, 1, kCopiedBytes); }
  void TearDown() override {
    EXPECT_OK(cudaFreeHost(pinned));
    EXPECT_OK(cudaFree(device));
    SimTest::TearDown();
  }
  /// Holds stream a until gate.open().
  void close() { ASSERT_OK(enqueue(a, "gate", {}, gate.work())); }

  Gate gate;
  std::byte *device = new_memory(kCopiedBytes), *pinned = new_pinned(kCopiedBytes);
  std::vector<std::byte> pageable = std::vector<std::byte>(kCopiedBytes, std::byte{1});
  const std::vector<std::byte> ones = pageable;
};

TEST_F(Copies, ReadPageableMemoryWhenTheyAreIssued) {
  close();
  ASSERT_OK(cudaMemcpyAsync(device, pageable.data(), kCopiedBytes, cudaMemcpyHostToDevice, a));
  std::fill(pageable.begin(), pageable.end(), std::byte{2});
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(ones, bytes_of(device, kCopiedBytes));
}

TEST_F(Copies, ReadPinnedMemoryWhenTheyRun) {
  close();
  ASSERT_OK(cudaMemcpyAsync(device, pinned, kCopiedBytes, cudaMemcpyHostToDevice, a));
  std::memset(pinned, 2, kCopiedBytes);
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(std::vector<std::byte>(kCopiedBytes, std::byte{2}), bytes_of(device, kCopiedBytes));
}

TEST_F(Copies, IntoPageableMemoryHoldTheCaller) {
  ASSERT_OK(cudaMemset(device, 7, kCopiedBytes));
  ASSERT_OK(cudaDeviceSynchronize());
  close();
  std::thread opener([this] { gate.open(); });
  ASSERT_OK(cudaMemcpyAsync(pageable.data(), device, kCopiedBytes, cudaMemcpyDeviceToHost, a));
  EXPECT_EQ(std::vector<std::byte>(kCopiedBytes, std::byte{7}), pageable);
  opener.join();
}

TEST_F(Copies, IntoPinnedMemoryDoNot) {
  ASSERT_OK(cudaMemset(device, 7, kCopiedBytes));
  ASSERT_OK(cudaDeviceSynchronize());
  close();
  ASSERT_OK(cudaMemcpyAsync(pinned, device, kCopiedBytes, cudaMemcpyDeviceToHost, a));
  EXPECT_EQ(std::byte{1}, pinned[0]);
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(std::byte{7}, pinned[kCopiedBytes - 1]);
}

TEST_F(Copies, FindOutTheirKind) {
  std::byte* const other = new_memory(kCopiedBytes);
  ASSERT_OK(cudaMemcpy(device, pageable.data(), kCopiedBytes, cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(other, device, kCopiedBytes, cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(pinned, other, kCopiedBytes, cudaMemcpyDefault));
  std::vector<std::byte> copy(kCopiedBytes);
  ASSERT_OK(cudaMemcpy(copy.data(), pinned, kCopiedBytes, cudaMemcpyDefault));
  EXPECT_EQ(ones, copy);
  EXPECT_OK(cudaFree(other));
}

TEST_F(Copies, OfAnotherKindThanTheMemoryAreRefused) {
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy(device, pinned, kCopiedBytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy(pinned, pageable.data(), kCopiedBytes, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection, cudaGetLastError());
}

TEST_F(Copies, PastTheEndAreRefused) {
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaMemcpy(device + 5000, pinned, kCopiedBytes, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaMemcpy(device, pinned + 4000, kCopiedBytes, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset(device + 4000, 0, kCopiedBytes));
  EXPECT_OK(cudaMemcpy(device, pinned, 0, cudaMemcpyHostToDevice));
}

TEST_F(Copies, BetweenOverlappingBytesMoveThem) {
  for (std::size_t i = 0; i < kCopiedBytes; ++i) pinned[i] = static_cast<std::byte>(i);
  ASSERT_OK(cudaMemcpy(device, pinned, kCopiedBytes, cudaMemcpyHostToDevice));
  ASSERT_OK(cudaMemcpy(device + 1, device, kCopiedBytes - 1, cudaMemcpyDeviceToDevice));
  const auto moved = bytes_of(device, kCopiedBytes);
  EXPECT_EQ(0, std::memcmp(moved.data() + 1, pinned, kCopiedBytes - 1));
}

}  // namespace
}  // namespace tessera::sim
