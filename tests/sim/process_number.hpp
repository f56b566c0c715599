// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace tessera::sim {

/// The rank that mpirun or srun gave this process, so that ranks draw different delays and a test
/// can name one; the same in each run.
inline std::uint64_t process_number() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::strtoull(value, nullptr, 10);
  return 0;
}

}  // namespace tessera::sim
