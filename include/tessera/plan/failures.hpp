// SPDX-License-Identifier: Apache-2.0
// How often a job fails, and how often it therefore saves. Seconds.
#pragma once

namespace tessera::plan {

/// Mean time between failures of a job on `ranks` ranks if nobody has counted them: 50,000 hours
/// for each rank, from 419 unplanned interruptions in 54 days on 16,384 GPUs ("The Llama 3 Herd of
/// Models", 2024, section 3.3.4).
double usual_seconds_between_failures(int ranks);

/// Of training between two saves: sqrt(2 x cost of a save x mean time between failures) (J. W.
/// Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974).
double young_interval(double cost, double between_failures);

}  // namespace tessera::plan
