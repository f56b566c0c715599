// SPDX-License-Identifier: Apache-2.0
// What a kernel is launched with, and the bytes that it may touch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "row_types.hpp"

namespace tessera::kernels::device {

/// Bytes that a kernel reads, or reads and writes: `groups` times `rows` times `bytes` bytes; rows
/// are `row_stride` bytes apart, groups group_stride. A launch on a GPU does not look at them; the
/// simulated one (tests/sim/kernels) reports every access outside.
struct Operand {
  const void* data = nullptr;
  std::int64_t bytes = 0, rows = 1, row_stride = 0, groups = 1, group_stride = 0;
  bool written = false;
  bool pinned = false;  ///< memory of the host
};

template <class T>
Operand reads(Rows<T> r, Extent extent) {
  constexpr std::int64_t size = sizeof(T);
  return {r.data, extent.width * size, extent.rows, r.stride * size};
}
template <class T>
Operand reads(const T* data, std::int64_t count) {
  return {data, data == nullptr ? 0 : count * static_cast<std::int64_t>(sizeof(T))};
}
inline Operand written(Operand operand) {
  operand.written = true;
  return operand;
}
inline Operand in_pinned(Operand operand) {
  operand.pinned = true;
  return operand;
}
template <class T>
Operand writes(Rows<T> r, Extent extent) {
  return written(reads(r, extent));
}
template <class T>
Operand writes(T* data, std::int64_t count) {
  return written(reads<T>(data, count));
}

inline constexpr int threads_per_block = 256, warps_per_block = threads_per_block / 32;

/// `blocks` blocks of threads_per_block threads, `shared_bytes` bytes of shared memory each.
struct Launch {
  const char* name;
  std::int64_t blocks;
  std::size_t shared_bytes;
  cudaStream_t stream;
  std::vector<Operand> operands;
};

}  // namespace tessera::kernels::device
