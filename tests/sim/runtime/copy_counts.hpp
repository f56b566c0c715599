// SPDX-License-Identifier: Apache-2.0
// What sim/sim.hpp's copy_counts() counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera::cudart {

inline std::atomic<std::int64_t> asynchronous_copies{0};  ///< between host and device
inline std::atomic<std::int64_t> held_callers{0};

}  // namespace tessera::cudart
