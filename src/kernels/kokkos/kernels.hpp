// SPDX-License-Identifier: Apache-2.0
// The kernels in Kokkos, for files that do not include it.
#pragma once

#include <string>

#include "host/row_functions.hpp"

namespace tessera::kernels::kokkos {

/// The table host_functions, after Kokkos was started. The first call starts it, unless the program
/// did; nobody ends it, because other threads may still run kernels when MPI or main() ends.
const HostFunctions& started_functions();

/// As "3.4.1 (Serial)": the version and the execution space. Does not start Kokkos.
std::string description();

}  // namespace tessera::kernels::kokkos
