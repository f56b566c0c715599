// SPDX-License-Identifier: Apache-2.0
// MPI as the race checker sees it: a host that reads what it sends and writes what it receives.
// These stand before MPI's own functions, which they call by the names of its profiling interface.
#include <mpi.h>

#include <cstddef>

#include "sim/sim.hpp"

namespace {

using tessera::sim::Access;
using tessera::sim::host_accesses;

std::size_t bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
}

void reads(const char* call, const void* data, int count, MPI_Datatype type) {
  host_accesses(call, Access{data, bytes_of(count, type), false});
}
void writes(const char* call, const void* data, int count, MPI_Datatype type) {
  host_accesses(call, Access{data, bytes_of(count, type), true});
}

}  // namespace

extern "C" {

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  reads("MPI_Isend", data, count, type);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  reads("MPI_Issend", data, count, type);
  return PMPI_Issend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  writes("MPI_Irecv", data, count, type);
  return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  (rank == root ? reads : writes)("MPI_Ibcast", data, count, type);
  return PMPI_Ibcast(data, count, type, root, comm, request);
}

/// An MPI that takes device pointers, as it does here, where TESSERA_SIM_CUDA_AWARE_MPI=1.
int MPIX_Query_cuda_support() { return tessera::sim::settings().cuda_aware_mpi ? 1 : 0; }

}  // extern "C"
