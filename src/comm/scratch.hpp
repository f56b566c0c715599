// SPDX-License-Identifier: Apache-2.0
// Memory for operations in progress, used again and again: an allocation for each call would fault
// its pages in each time.
#pragma once

#include <cstddef>
#include <utility>

namespace tessera::comm {

/// A run of at least `bytes`, aligned to 64; goes back to the process's pool when destroyed.
/// Thread-safe.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::size_t bytes);
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Scratch();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tessera::comm
