// SPDX-License-Identifier: Apache-2.0
// Host memory that copies on streams read and write where it lies.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "device_memory.hpp"

namespace tessera::cudart {

/// Thread-safe.
class PinnedMemory {
 public:
  static PinnedMemory& get();
  /// Null where the system has no `bytes`.
  void* allocate(std::size_t bytes, int device);
  /// What was allocated at `data`; bytes is 0 where nothing was. The caller frees it with
  /// release().
  Allocation remove(void* data);
  static void release(const Allocation& allocation);
  /// The allocation around `address`.
  Allocation find(const void* address);

 private:
  std::mutex mutex_;
  std::map<const std::byte*, Allocation> allocations_;
};

}  // namespace tessera::cudart
