#include "tessera/train/auto_interval.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::train {
namespace {

constexpr double kAssumedCost = 1;  // of the first, which is measured

double interval(double cost, double mean_time_between_failures) {
  return std::sqrt(2 * cost * mean_time_between_failures);
}

}  // namespace

AutoInterval::AutoInterval(double mean_time_between_failures, double now)
    : mean_time_between_failures_(mean_time_between_failures),
      began_(now),
      seconds_(interval(kAssumedCost, mean_time_between_failures)) {}

void AutoInterval::measured(const checkpoint::SaveResult& result) {
  seconds_ = std::max(interval(result.blocked_seconds, mean_time_between_failures_), result.seconds);
}

}  // namespace tessera::train
