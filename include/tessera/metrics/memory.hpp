// SPDX-License-Identifier: Apache-2.0
// Memory of this process, as the kernel counts it.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::metrics {

struct ProcessMemory {
  std::int64_t resident_bytes = 0;       ///< now
  std::int64_t peak_resident_bytes = 0;  ///< the most since the start
};

/// Reads /proc/self/status; zeros where there is none. Takes some 10 microseconds: once a step is
/// fine.
ProcessMemory process_memory();

/// The same from the text of a status file.
ProcessMemory process_memory_of(std::string_view status);

/// What the machine, and the control group that a batch system put this process into, can still
/// give; 0 where neither says.
std::int64_t available_host_bytes();

}  // namespace tessera::metrics
