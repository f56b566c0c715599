// SPDX-License-Identifier: Apache-2.0
// What communicators move: a typed run of memory. They know nothing of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/base/dtype.hpp"

namespace tessera::comm {

/// `none`: addresses without bytes, of tensors that have shapes alone (kernels/shapes.hpp). Self
/// and recording communicators take them.
enum class Memory : std::uint8_t { host, device, none };

/// `count` elements of `dtype` at `data`; the memory stays the caller's and must live until the
/// request completed.
struct Buffer {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  Memory memory = Memory::host;

  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
  /// Elements [first, first + n) of this buffer.
  Buffer part(std::int64_t first, std::int64_t n) const {
    return {static_cast<std::byte*>(data) + static_cast<std::size_t>(first) * size_of(dtype), n,
            dtype, memory};
  }
};

}  // namespace tessera::comm
