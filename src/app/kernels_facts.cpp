// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "tessera/kernels/host_kernels.hpp"

namespace {

const tessera::app::RuntimeFactRegistration kokkos{"kokkos", &tessera::kernels::kokkos_description};
const tessera::app::RuntimeFactRegistration kernels{"kernels", &tessera::kernels::host_kernels};

}  // namespace
