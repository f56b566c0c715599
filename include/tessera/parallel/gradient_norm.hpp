// SPDX-License-Identifier: Apache-2.0
// The L2 norm of all gradients, each element counted once over every axis of the mesh, and what in
// them is not finite.
#pragma once

#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/kernels/host_copy.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {

struct GradientNorm {
  double norm = 0;              ///< NaN if anything is not finite
  std::string first_nonfinite;  ///< "" or "layers.3.attention.wq.weight (rank 5)": the lowest
                                ///< rank's first such parameter
};

/// Sums of squares that are being computed where the gradients are.
class SquaredGradients {
 public:
  /// Of this rank's trained parameters, whose gradients must not change before norm(). With `exact`
  /// the sum of squares is exact, so that its bits do not depend on the mesh
  /// (kernels/exact_sum.hpp); otherwise it is summed in double, rank by rank.
  SquaredGradients(Params trained, bool exact);

  /// Holds the caller until the device is done. It is then done with all that was before these sums
  /// on its stream.
  void wait() const { sums_.wait(); }
  /// Waits. Collective over `control` (host memory, all ranks).
  GradientNorm norm(comm::Communicator& control) const;

 private:
  double fast_sum(comm::Communicator& control) const;
  double exact_sum(comm::Communicator& control) const;

  Params trained_;
  bool exact_;
  /// Parts of `sums_`, each of gradients that lie one after the other.
  std::vector<std::int64_t> sizes_;
  /// The first of them count. The others are of copies that a replica or tensor-parallel rank
  /// counts, and are looked at for what is not finite: a rank's memory may be damaged.
  std::size_t counted_ = 0;
  kernels::HostCopy sums_;
};

}  // namespace tessera::parallel
