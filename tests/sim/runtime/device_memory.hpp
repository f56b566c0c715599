// SPDX-License-Identifier: Apache-2.0
// Device memory: one memory file of sparse address space, mapped once. Each device has a part of
// it. Memory that is not allocated cannot be touched; new memory holds 0xFF in every byte (NaN in
// every floating-point type).
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "sim/sim.hpp"

namespace tessera::cudart {

struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< 0: none
  int device = 0;
};

/// Thread-safe. Allocations begin at pages, with a page between them that cannot be touched; so
/// addresses need more than the limit: each device has twice as many.
class DeviceMemory {
 public:
  static DeviceMemory& get();

  sim::Arena arena() const { return arena_; }
  /// Null where the device's limit leaves no `bytes`.
  void* allocate(int device, std::size_t bytes);
  /// Gives memory back to the system; false where nothing was allocated at `data`.
  bool free(void* data);
  /// The allocation around `address`.
  Allocation find(const void* address);
  /// The same for a handler of signals: finds none where another thread holds the lock.
  Allocation find_in_handler(const void* address);
  std::size_t free_bytes(int device);
  /// For Guard::process: a thread more, or less, that may touch what is allocated. With none,
  /// nobody may.
  void open();
  void close();
  /// The device in whose part of the arena `address` lies.
  int device_of(const void* address) const {
    return static_cast<int>(
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - arena_.base) /
        part_bytes_);
  }

 private:
  struct Part {
    std::byte* begin = nullptr;
    std::size_t next = 0;  ///< where to look first, in bytes from begin
    std::size_t used = 0;  ///< bytes
    std::map<std::byte*, std::size_t> allocations;
  };

  DeviceMemory();
  std::byte* find_place(Part& part, std::size_t bytes) const;
  std::byte* find_place(Part& part, std::size_t bytes, std::byte* from) const;
  Part& part_of(const void* address) {
    return parts_[static_cast<std::size_t>(device_of(address))];
  }
  Allocation find_locked(const void* address);
  void for_all(void (*protect)(std::byte* memory, std::size_t bytes)) const;

  sim::Arena arena_;
  std::size_t part_bytes_ = 0;
  std::mutex mutex_;
  int open_threads_ = 0;
  std::vector<Part> parts_;
};

}  // namespace tessera::cudart
