// SPDX-License-Identifier: Apache-2.0
// Whether MPI can read and write device memory by itself.
#pragma once

namespace tessera::comm {

/// What MPIX_Query_cuda_support() says; false where MPI has no such call, or where
/// TESSERA_STAGE_DEVICE_MEMORY=1.
bool mpi_takes_device_memory();

}  // namespace tessera::comm
