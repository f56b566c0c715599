// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/failures.hpp"

#include <cmath>

namespace tessera::plan {

double usual_seconds_between_failures(int ranks) { return 50'000.0 * 3600 / ranks; }

double young_interval(double cost, double between_failures) {
  return std::sqrt(2 * cost * between_failures);
}

}  // namespace tessera::plan
