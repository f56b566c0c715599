// SPDX-License-Identifier: Apache-2.0
// The L2 norm of all gradients, each element counted once over every axis of the mesh, and what in
// them is not finite.
#pragma once

#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {

struct GradientNorm {
  double norm = 0;              ///< NaN if anything is not finite
  std::string first_nonfinite;  ///< "" or "layers.3.attention.wq.weight (rank 5)": the lowest
                                ///< rank's first such parameter
};

/// Of this rank's trained parameters. Collective over `control` (host memory, all ranks). With
/// `exact` the sum of squares is exact, so that its bits do not depend on the mesh
/// (kernels/exact_sum.hpp); otherwise it is summed in double, rank by rank.
GradientNorm gradient_norm(const Params& trained, comm::Communicator& control, bool exact);

}  // namespace tessera::parallel
