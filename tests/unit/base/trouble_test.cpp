// SPDX-License-Identifier: Apache-2.0
// Errors of libraries that are no bugs, in one line each.
#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>

#include "tessera/base/file_trouble.hpp"
#include "tessera/base/out_of_memory.hpp"

namespace tessera {
namespace {

TEST(OutOfMemory, SaysHowMuchWasWanted) {
  const std::runtime_error host(
      "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried "
      "to allocate "
      "65536000000 bytes. Error code 12 (Cannot allocate memory)\nstack");
  EXPECT_EQ(out_of_memory(host), "out of memory: could not allocate 61.0 GiB");
  const std::runtime_error device(
      "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 1 GiB free\nstack");
  EXPECT_EQ(out_of_memory(device),
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 1 GiB free");
  const std::runtime_error library(
      "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\nstack");
  EXPECT_EQ(out_of_memory(library),
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`");
  EXPECT_EQ(out_of_memory(std::bad_alloc()), "out of memory");
  EXPECT_EQ(out_of_memory(std::runtime_error("anything else")), "");
}

TEST(OutOfMemory, AdviceIsWhatWasKeptBefore) {
  EXPECT_EQ(memory_advice("use more ranks"), "use more ranks");
  keep_memory_advice("recompute");
  EXPECT_EQ(memory_advice("use more ranks"), "recompute");
  keep_memory_advice("");
  EXPECT_EQ(memory_advice("use more ranks"), "use more ranks");
}

TEST(FileTrouble, NamesTheFileAndTheReason) {
  const std::filesystem::filesystem_error error(
      "cannot create directories", "full/w",
      std::make_error_code(std::errc::read_only_file_system));
  EXPECT_EQ(file_trouble(error),
            "cannot read or write 'full/w' (Read-only file system); check the path, its "
            "permissions and the free "
            "space");
  EXPECT_EQ(file_trouble(std::runtime_error("anything else")), "");
}

}  // namespace
}  // namespace tessera
