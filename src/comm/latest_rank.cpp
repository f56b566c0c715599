// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/latest_rank.hpp"

#include <algorithm>
#include <limits>

namespace tessera::comm {

/// Nanoseconds and rank in one number, so that the least one names its rank.
LatestRank latest_rank(Communicator& control, double waited) {
  if (control.size() == 1) return {};
  constexpr std::int64_t kRanks = std::int64_t{1} << 24;
  constexpr double kMost_seconds = 500;  // more would not fit
  const auto own_ns = static_cast<std::int64_t>(std::min(waited, kMost_seconds) * 1e9);
  const std::int64_t own = own_ns * kRanks + control.rank();
  const std::int64_t least = all_reduce_scalar(control, own, Op::min);
  const std::int64_t next = all_reduce_scalar(
      control, own == least ? std::numeric_limits<std::int64_t>::max() : own, Op::min);
  const std::int64_t late_ns = next / kRanks - least / kRanks;
  return {static_cast<int>(least % kRanks), static_cast<double>(late_ns) * 1e-9};
}

}  // namespace tessera::comm
