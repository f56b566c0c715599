// SPDX-License-Identifier: Apache-2.0
// Memory for file data.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tessera::checkpoint {

/// Not initialised, and begins with a page: the kernel copies twice as fast to and from whole cache
/// lines.
class AlignedMemory {
 public:
  /// At least `bytes` bytes; what was in them is lost when that is more than ever before.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      capacity_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace tessera::checkpoint
