// SPDX-License-Identifier: Apache-2.0
// Ranks that have died, as a fault-tolerant MPI reports them (User-Level Failure Mitigation,
// fault-tolerance.org; Open MPI 5 under `mpirun --with-ft ulfm`). With any other MPI the launcher
// ends the job before anyone could ask.
#pragma once

#include <mpi.h>

#include <vector>

namespace tessera::comm {

/// World ranks of `comm` that are known to have died, in rising order; none with an MPI that does
/// not report them.
std::vector<int> lost_ranks(MPI_Comm comm);

/// Where ranks have died: holds all but the lowest living rank for ten seconds and more, one longer
/// than the other, within which an abort before theirs ends them. The launcher of Open MPI 5.0
/// sometimes hangs, or ends with 0, when all ranks that are left abort at one time.
void leave_the_abort_to_the_first(MPI_Comm comm);

}  // namespace tessera::comm
