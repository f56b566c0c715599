// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace tessera::metrics {
namespace {

constexpr std::int64_t block_bytes = 64 << 20;

/// Touched pages straight from the kernel, given back at once: allocators (and sanitizers) keep
/// what they free.
class Block {
 public:
  Block()
      : at_(::mmap(nullptr, block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {
    if (at_ != MAP_FAILED) std::memset(at_, 1, block_bytes);
  }
  ~Block() { ::munmap(at_, block_bytes); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  void* at_;
};

TEST(ProcessMemory, ReadsTheKernelsText) {
  const ProcessMemory memory =
      process_memory_of("Name:\tx\nVmPeak:\t 3060 kB\nVmHWM:\t    1684 kB\nVmRSS:\t 1600 kB\n");
  EXPECT_EQ(memory.resident_bytes, 1600 * 1024);
  EXPECT_EQ(memory.peak_resident_bytes, 1684 * 1024);
}

TEST(ProcessMemory, IsZeroWhereTheTextSaysNothing) {
  EXPECT_EQ(process_memory_of("").resident_bytes, 0);
  EXPECT_EQ(process_memory_of("VmRSS:").resident_bytes, 0);
  EXPECT_EQ(process_memory_of("VmHWM: ???").peak_resident_bytes, 0);
}

TEST(ProcessMemory, FollowsAnAllocation) {
  const ProcessMemory before = process_memory();
  const Block block;
  const ProcessMemory with = process_memory();
  EXPECT_GE(with.resident_bytes - before.resident_bytes, block_bytes * 9 / 10);
  EXPECT_GE(with.peak_resident_bytes, with.resident_bytes * 9 / 10);
}

TEST(ProcessMemory, PeakStays) {
  { const Block block; }
  const ProcessMemory after = process_memory();
  EXPECT_GE(after.peak_resident_bytes - after.resident_bytes, block_bytes / 2);
}

}  // namespace
}  // namespace tessera::metrics
