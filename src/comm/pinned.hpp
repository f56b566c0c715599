// SPDX-License-Identifier: Apache-2.0
// Host memory that the device copies from and to without holding anyone. Device files only.
#pragma once

#include <cstddef>
#include <utility>

#include "device_events.hpp"

namespace tessera::comm {

/// A run of at least `bytes` of pinned memory; goes back to the process's pool when destroyed, and
/// on to its next owner at once: that one's first copy must wait for free(). Throws
/// Error(environment) where no more can be pinned.
class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(std::size_t bytes);
  Pinned(Pinned&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        free_(std::move(other.free_)) {}
  Pinned& operator=(Pinned&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
    return *this;
  }
  ~Pinned();
  std::byte* data() const { return data_; }
  /// When the last copy of the owner before is over; null: nobody copies.
  const Event& free() const { return free_; }
  /// When the last copy of this owner is over.
  void use_until(Event event) { free_ = std::move(event); }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Event free_;
};

}  // namespace tessera::comm
