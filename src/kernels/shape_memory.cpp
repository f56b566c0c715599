// SPDX-License-Identifier: Apache-2.0
#include "shape_memory.hpp"

#include <c10/core/Allocator.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t kBlock = 512;                      ///< as LibTorch's allocator for GPUs
constexpr std::int64_t kSpan = std::int64_t{1} << 44;     ///< bytes of reserved addresses
constexpr std::int64_t kLargest = std::int64_t{1} << 42;  ///< bytes of one tensor

/// Hands out addresses that nobody may read. They are used again after kSpan bytes.
class ShapeMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(c10::DeviceType::Meta);
    if (bytes == 0) return {nullptr, device};
    require(static_cast<std::int64_t>(bytes) <= kLargest, ExitCode::usage,
            "a tensor of {} bytes is larger than any device", bytes);
    const std::int64_t size = (static_cast<std::int64_t>(bytes) + kBlock - 1) / kBlock * kBlock;
    auto* const block = new Block{this, size};
    count(size);
    const std::int64_t begin = next_.fetch_add(size) % (kSpan - kLargest);
    return {base_ + begin, block, &ShapeMemory::free, device};
  }
  void copy_data(void*, const void*, std::size_t) const override {}

  std::int64_t bytes() const { return bytes_; }

 private:
  struct Block {
    ShapeMemory* owner;
    std::int64_t size;
  };

  static char* reserve() {
    void* const base =
        mmap(nullptr, kSpan, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(base != MAP_FAILED, ExitCode::environment,
            "cannot reserve addresses for tensors without values: {}; see ulimit -v",
            std::strerror(errno));
    return static_cast<char*>(base);
  }

  static void free(void* context) {
    const auto* const block = static_cast<const Block*>(context);
    block->owner->count(-block->size);
    delete block;
  }

  void count(std::int64_t change) {
    const auto now = static_cast<std::size_t>(bytes_ += change);
    c10::reportMemoryUsageToProfiler(nullptr, change, now, now, c10::Device(c10::DeviceType::Meta));
  }

  char* base_ = reserve();
  std::atomic<std::int64_t> next_ = 0, bytes_ = 0;
};

/// Lives as long as LibTorch, which may free tensors after main().
ShapeMemory& shape_memory() {
  static auto* const memory = new ShapeMemory;
  return *memory;
}

}  // namespace

void install_shape_memory() {
  [[maybe_unused]] static const bool installed = [] {
    c10::SetAllocator(c10::DeviceType::Meta, &shape_memory(), /*priority=*/1);
    return true;
  }();
}

std::int64_t shape_memory_bytes() { return shape_memory().bytes(); }

}  // namespace tessera::kernels
