// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/cartesian.hpp"

#include <functional>
#include <numeric>

#include "mpi_communicator.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

using Cuts = std::vector<std::unique_ptr<Communicator>>;

MpiHandle make_grid(const Place& place, std::span<const int> extents) {
  const std::vector<int> periods(extents.size(), 0);
  MPI_Comm grid = MPI_COMM_NULL;
  check_mpi(MPI_Cart_create(place.comm, static_cast<int>(extents.size()), extents.data(),
                            periods.data(), 0, &grid),
            "MPI_Cart_create", place);
  return MpiHandle(grid);
}

Cuts split_mpi(const MpiCommunicator& root, std::span<const int> extents,
               std::span<const GridCut> cuts) {
  const MpiHandle grid = make_grid(root.place(), extents);
  Cuts made;
  for (const GridCut& cut : cuts) {
    const std::vector<int> remain(cut.keep.begin(), cut.keep.end());
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(MPI_Cart_sub(grid.get(), remain.data(), &part), "MPI_Cart_sub", root.place());
    made.push_back(std::make_unique<MpiCommunicator>(MpiHandle(part), cut.axis, root.rules()));
  }
  return made;
}

/// Ranks with equal coordinates outside of the cut share a color; the rank itself is their order.
Cuts split_any(Communicator& root, std::span<const int> extents, std::span<const GridCut> cuts) {
  Cuts made;
  for (const GridCut& cut : cuts) {
    int color = 0, stride = 1, rest = root.rank();
    for (std::size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      if (cut.keep[d]) continue;
      color += stride * (rest % extents[d]);
      stride *= extents[d];
    }
    made.push_back(root.split(color, root.rank(), cut.axis));
  }
  return made;
}

}  // namespace

Cuts split_grid(Communicator& root, std::span<const int> extents, std::span<const GridCut> cuts) {
  const std::int64_t ranks =
      std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  TESSERA_EXPECT(ranks == root.size(), "a grid of {} ranks over a communicator of {}", ranks,
                 root.size());
  for (const GridCut& cut : cuts)
    TESSERA_EXPECT(cut.keep.size() == extents.size(), "cut {} keeps {} of {} coordinates", cut.axis,
                   cut.keep.size(), extents.size());
  if (const auto* mpi = dynamic_cast<const MpiCommunicator*>(&root))
    return split_mpi(*mpi, extents, cuts);
  return split_any(root, extents, cuts);
}

}  // namespace tessera::comm
