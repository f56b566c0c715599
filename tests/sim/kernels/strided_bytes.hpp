// SPDX-License-Identifier: Apache-2.0
// From strides to what sim::Access can say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {

/// `count` times, `stride` bytes apart.
struct Repeat {
  std::int64_t count, stride;
};

/// Adds the bytes of `bytes` contiguous bytes at `data`, repeated. Neighbours become one access;
/// more than 1024 pieces are covered by fewer with the gaps between them, which may report a race
/// where there is none.
void add_accesses(std::vector<Access>& accesses, const void* data, std::size_t bytes,
                  std::vector<Repeat> repeats, bool writes);

}  // namespace tessera::sim
