// SPDX-License-Identifier: Apache-2.0
#include "direct_mpi.hpp"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <cstdlib>
#include <string_view>

namespace tessera::comm {

bool mpi_takes_device_memory() {
  const char* stage = std::getenv("TESSERA_STAGE_DEVICE_MEMORY");
  if (stage && std::string_view(stage) == "1") return false;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace tessera::comm
