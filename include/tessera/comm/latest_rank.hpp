// SPDX-License-Identifier: Apache-2.0
// Who comes last to the collective calls of a step.
#pragma once

#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

struct LatestRank {
  int rank = 0;        ///< has waited least for others: they waited for it
  double seconds = 0;  ///< by which it came later than any other rank
};

/// Collective; the same on every rank. `waited`: seconds for which this rank waited for others
/// between two points that all ranks pass together. Phases do not show a late rank: the others
/// spend its delay in calls of the same phase.
LatestRank latest_rank(Communicator& control, double waited);

}  // namespace tessera::comm
