// SPDX-License-Identifier: Apache-2.0
// Cutting a communicator along a grid of its ranks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// The communicators of one kind: ranks that differ only in the kept coordinates, ordered by them,
/// the first slowest.
struct GridCut {
  std::vector<bool> keep;  ///< one for each extent
  std::string axis;        ///< its name in messages
};

/// Collective over `root`, with equal arguments on all ranks. Rank r of `root` has the row-major
/// coordinates of r in the grid of `extents`, whose product is root's size. Gives this rank's
/// communicator of each cut, made in the order of `cuts`. Over MPI they come from MPI_Cart_create
/// and MPI_Cart_sub.
std::vector<std::unique_ptr<Communicator>> split_grid(Communicator& root,
                                                      std::span<const int> extents,
                                                      std::span<const GridCut> cuts);

}  // namespace tessera::comm
