// SPDX-License-Identifier: Apache-2.0
// Who exchanges with whom, and where data of others is stored, in exchanges between all pairs of
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "mpi_call.hpp"

namespace tessera::comm {

/// Visits the other ranks in an order in which no rank is everybody's first target.
template <class Function>
void for_each_peer(const Place& place, Function function) {
  for (int step = 1; step < place.size; ++step) {
    const int to = (place.rank + step) % place.size;
    const int from = (place.rank - step + place.size) % place.size;
    function(to, from);
  }
}

/// Pointers to every rank's part: mine where it is, the others in a row at `received` in rank
/// order.
inline std::vector<const void*> parts_of(const Place& place, const void* mine,
                                         const std::byte* received, std::size_t bytes) {
  std::vector<const void*> parts;
  for (int r = 0; r < place.size; ++r) {
    const int slot = r < place.rank ? r : r - 1;
    parts.push_back(r == place.rank ? mine : received + static_cast<std::size_t>(slot) * bytes);
  }
  return parts;
}

inline std::byte* slot_of(const Place& place, std::byte* received, int rank, std::size_t bytes) {
  return received + static_cast<std::size_t>(rank < place.rank ? rank : rank - 1) * bytes;
}

inline std::vector<std::int64_t> offsets_of(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::int64_t{0});
  return offsets;
}

}  // namespace tessera::comm
