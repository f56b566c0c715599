// Ranks that have died, as a fault-tolerant MPI tells (User-Level Failure Mitigation, fault-tolerance.org; Open MPI 5 under
// `mpirun --with-ft ulfm`). With any other MPI the launcher ends the job before somebody could ask.
#pragma once

#include <mpi.h>

#include <vector>

namespace tessera::comm {

/// World ranks of `comm` that are known to have died, in rising order; none with an MPI that cannot tell.
std::vector<int> lost_ranks(MPI_Comm comm);

}  // namespace tessera::comm
