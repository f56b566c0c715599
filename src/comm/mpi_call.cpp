// SPDX-License-Identifier: Apache-2.0
#include "mpi_call.hpp"

#include <fmt/ranges.h>

#include "lost_ranks.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {

void check_mpi(int code, const char* call, const Place& place) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  // Any error class may be the first sign of a rank that died.
  if (const std::vector<int> lost = lost_ranks(MPI_COMM_WORLD); !lost.empty())
    fail(ExitCode::communication,
         "rank{} {} died, which rank {} of {} on axis {} found in {}; run the same command to "
         "resume from the last "
         "checkpoint",
         lost.size() > 1 ? "s" : "", fmt::join(lost, ", "), place.rank, place.size, place.axis,
         call);
  fail(ExitCode::communication,
       "{} failed: {} (code {}, rank {} of {} on axis {}); look for a rank or node that died", call,
       text, code, place.rank, place.size, place.axis);
}

MpiHandle::~MpiHandle() {
  int over = 0;
  MPI_Finalized(&over);
  if (comm_ != MPI_COMM_NULL && !over) MPI_Comm_free(&comm_);
}

}  // namespace tessera::comm
