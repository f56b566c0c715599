// SPDX-License-Identifier: Apache-2.0
#include "lost_ranks.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace tessera::comm {

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

std::vector<int> lost_ranks(MPI_Comm comm) {
  MPI_Group lost = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  if (comm == MPI_COMM_NULL || MPIX_Comm_get_failed(comm, &lost) != MPI_SUCCESS) return {};
  int count = 0;
  MPI_Group_size(lost, &count);
  std::vector<int> inside(static_cast<std::size_t>(count)), ranks(inside.size());
  std::iota(inside.begin(), inside.end(), 0);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(lost, count, inside.data(), world, ranks.data());
  MPI_Group_free(&world);
  MPI_Group_free(&lost);
  std::ranges::sort(ranks);
  return ranks;
}

#else

std::vector<int> lost_ranks(MPI_Comm) { return {}; }

#endif

void leave_the_abort_to_the_first(MPI_Comm comm) {
  const std::vector<int> lost = lost_ranks(comm);
  if (lost.empty()) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // among the living
  const auto place = rank - (std::ranges::lower_bound(lost, rank) - lost.begin());
  if (place > 0)
    std::this_thread::sleep_for(std::chrono::seconds(10 + std::min<std::ptrdiff_t>(place, 60)));
}

}  // namespace tessera::comm
