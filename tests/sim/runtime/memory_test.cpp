// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "sim_test.hpp"

namespace tessera::sim {
namespace {

using Memory = SimTest;

bool is_poison(const void* data, std::size_t bytes) {
  const auto copy = bytes_of(data, bytes);
  return std::all_of(copy.begin(), copy.end(),
                     [](std::byte byte) { return byte == std::byte{0xFF}; });
}

TEST_F(Memory, IsPoisonAndAligned) {
  for (std::size_t bytes : {1, 511, 4096, 1 << 20}) {
    std::byte* const data = new_memory(bytes);
    EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(data) % 512);
    EXPECT_TRUE(is_device_pointer(data));
    EXPECT_TRUE(is_poison(data, bytes));
    ASSERT_OK(cudaMemset(data, 0, bytes));
    ASSERT_OK(cudaFree(data));
  }
  std::byte* const again = new_memory(1 << 20);
  EXPECT_TRUE(is_poison(again, 1 << 20));
  EXPECT_OK(cudaFree(again));
}

TEST_F(Memory, PoisonIsNotANumber) {
  double* const data = reinterpret_cast<double*>(new_memory(sizeof(double)));
  double value = 0;
  ASSERT_OK(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::isnan(value));
  EXPECT_OK(cudaFree(data));
}

TEST_F(Memory, BlocksBecomePoisonInTheOrderOfTheirStream) {
  constexpr std::size_t bytes = 2048;
  std::byte* const data = new_memory(bytes);
  Gate gate;
  ASSERT_OK(block_allocated(data, bytes, a));
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(cudaMemsetAsync(data, 0, bytes, a));
  ASSERT_OK(block_freed(data, bytes, a));
  gate.open();
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_TRUE(is_poison(data, bytes));
  ASSERT_OK(cudaMemsetAsync(data, 0, bytes, a));
  ASSERT_OK(cudaStreamSynchronize(a));
  ASSERT_OK(block_allocated(data, bytes, a));
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_TRUE(is_poison(data, bytes));
  EXPECT_OK(cudaFree(data));
}

TEST_F(Memory, HasAnother) {
  std::byte *const first = new_memory(100), *const second = new_memory(100);
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(first + 1));
  EXPECT_OK(cudaFree(first));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(first));
  EXPECT_OK(cudaFree(second));
  EXPECT_OK(cudaFree(nullptr));
  static_cast<void>(cudaGetLastError());
}

TEST_F(Memory, IsFreedAfterAllTasks) {
  std::byte* const data = new_memory(100);
  Gate gate;
  std::atomic<bool> done = false;
  ASSERT_OK(enqueue(a, "gate", {}, gate.work()));
  ASSERT_OK(enqueue(a, "task", {}, [&] {
    done = true;
    return cudaSuccess;
  }));
  std::thread opener([&] { gate.open(); });
  EXPECT_OK(cudaFree(data));
  EXPECT_TRUE(done);
  opener.join();
}

TEST_F(Memory, TellsWhatAPointerIs) {
  std::byte *const device = new_memory(100), *const pinned = new_pinned(100);
  cudaPointerAttributes place{};
  ASSERT_OK(cudaPointerGetAttributes(&place, device + 99));
  EXPECT_EQ(cudaMemoryTypeDevice, place.type);
  EXPECT_EQ(device + 99, place.devicePointer);
  EXPECT_EQ(nullptr, place.hostPointer);
  ASSERT_OK(cudaPointerGetAttributes(&place, pinned + 99));
  EXPECT_EQ(cudaMemoryTypeHost, place.type);
  EXPECT_EQ(pinned + 99, place.hostPointer);
  ASSERT_OK(cudaPointerGetAttributes(&place, &place));
  EXPECT_EQ(cudaMemoryTypeUnregistered, place.type);
  ASSERT_OK(cudaFree(device));
  ASSERT_OK(cudaPointerGetAttributes(&place, device));
  EXPECT_EQ(cudaMemoryTypeUnregistered, place.type);
  EXPECT_OK(cudaFreeHost(pinned));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeHost(pinned));
}

TEST_F(Memory, CanBeOpenedByAnotherProcess) {
  std::byte* const data = new_memory(1);
  ASSERT_OK(cudaMemset(data, 42, 1));
  ASSERT_OK(cudaDeviceSynchronize());
  char byte = 0;
  ASSERT_EQ(1, pread(arena().fd, &byte, 1, data - arena().base));
  EXPECT_EQ(42, byte);
  EXPECT_OK(cudaFree(data));
}

/// The flags of the mapping around `address`, as proc(5) lists them.
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      within = begin <= reinterpret_cast<std::uintptr_t>(address) &&
               reinterpret_cast<std::uintptr_t>(address) < end;
    if (within && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST_F(Memory, IsNeitherDumpedNorInherited) {
  std::byte* const data = new_memory(1);
  for (const void* address :
       {static_cast<const void*>(data), static_cast<const void*>(arena().base)}) {
    EXPECT_NE(std::string::npos, mapping_flags(address).find(" dd ")) << mapping_flags(address);
    EXPECT_NE(std::string::npos, mapping_flags(address).find(" dc ")) << mapping_flags(address);
  }
  EXPECT_OK(cudaFree(data));
}

/// In a process of its own: settings are read once.
class MemoryDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void run_out_of_memory() {
  setenv("TESSERA_SIM_MEMORY_BYTES", "1048576", 1);
  std::size_t free = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(1048576U, free);
  EXPECT_EQ(1048576U, total);
  std::byte* const half = new_memory(1 << 19);
  void* data = nullptr;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&data, (1 << 19) + 1));
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaGetLastError());
  EXPECT_OK(cudaGetLastError());  // the device goes on
  std::byte* const rest = new_memory(1 << 19);
  EXPECT_OK(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(0U, free);
  for (int i = 0; i < 100; ++i) {  // more than there are addresses
    EXPECT_OK(cudaFree(i == 0 ? rest : static_cast<std::byte*>(data)));
    EXPECT_OK(cudaMalloc(&data, 1 << 19));
  }
  EXPECT_OK(cudaFree(half));
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(MemoryDeathTest, HasALimit) {
  EXPECT_EXIT(run_out_of_memory(), testing::ExitedWithCode(0), "");
}

TEST_F(MemoryDeathTest, CannotBeTouchedWhereNothingIsAllocated) {
  EXPECT_DEATH(
      {
        std::byte* const data = new_memory(4096);
        enqueue(nullptr, "overrun", {}, [data] {
          data[4096] = std::byte{0};
          return cudaSuccess;
        });
        cudaDeviceSynchronize();
      },
      "overrun writes device memory at 0x[0-9a-f]+, which is in no allocation");
}

TEST_F(MemoryDeathTest, CannotBeTouchedAfterItIsFreed) {
  EXPECT_DEATH(
      {
        std::byte* const data = new_memory(4096);
        cudaFree(data);
        run_at_once(nullptr, "late", {},
                    [data] { return data[100] == std::byte{0} ? cudaSuccess : cudaErrorUnknown; });
      },
      "late reads device memory at 0x[0-9a-f]+, which is in no allocation");
}

TEST_F(MemoryDeathTest, CannotBeReadByTheHost) {
  EXPECT_DEATH(
      {
        setenv("TESSERA_SIM_GUARD", "process", 1);
        std::byte* const data = new_memory(100);
        std::fprintf(stderr, "%d", static_cast<int>(data[7]));
      },
      "the host reads device memory at 0x[0-9a-f]+, byte 7 of an allocation of 4096 bytes");
}

TEST_F(MemoryDeathTest, CannotBeReadByTheHostAfterTasks) {
  EXPECT_DEATH(
      {
        setenv("TESSERA_SIM_GUARD", "process", 1);
        std::byte* const data = new_memory(100);
        cudaMemset(data, 0, 100);
        run_at_once(nullptr, "task", {},
                    [data] { return data[0] == std::byte{0} ? cudaSuccess : cudaErrorUnknown; });
        cudaDeviceSynchronize();
        std::fprintf(stderr, "%d", static_cast<int>(data[0]));
      },
      "^tessera-sim: the host reads device memory at 0x[0-9a-f]+, byte 0 of an allocation");
}

void open_memory() {
  setenv("TESSERA_SIM_GUARD", "process", 1);
  std::byte* const data = new_memory(100);
  {
    const DeviceMemoryOpen open, again;
    data[7] = std::byte{1};
  }
  std::exit(0);
}

TEST_F(MemoryDeathTest, CanBeOpened) { EXPECT_EXIT(open_memory(), testing::ExitedWithCode(0), ""); }

}  // namespace
}  // namespace tessera::sim
