// SPDX-License-Identifier: Apache-2.0
// Allocations that fail on this process's GPU, for messages about memory that is used up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::train {

/// An allocation that failed, and what memory held then.
struct FailedAllocation {
  std::int64_t total = 0;      ///< of the GPU
  std::int64_t free = 0;       ///< on the GPU; -1: unknown
  std::int64_t reserved = 0;   ///< held by the allocator, for tensors and unused
  std::int64_t allocated = 0;  ///< of those, in tensors
  std::int64_t wanted = 0;     ///< by the allocation; 0: unknown
  std::string place;           ///< "layers.14 backward"; empty: unknown
};

/// Begins to follow it. take_device() calls this; once is enough.
void follow_device_memory();

/// The last one; nothing where none has failed.
std::optional<FailedAllocation> failed_allocation();

/// Set if the allocator has been asking the GPU for memory that it lacks for this long. It gives
/// unused memory back, and CUDA then waits for the whole GPU: forever if that waits for another
/// rank, which waits for this one. Any thread may ask; never waits for the allocator.
std::optional<FailedAllocation> held_allocation(std::chrono::seconds for_so_long);

}  // namespace tessera::train
