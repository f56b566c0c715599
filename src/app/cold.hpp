// SPDX-License-Identifier: Apache-2.0
// Operands that have left the caches, for measurements that must find them as a step does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tessera::app {

/// As many sets of operands as exceed the caches: a step comes back to an operand after many
/// others. `round_bytes` are used from one set to the next.
template <class Set>
class Cold {
 public:
  template <class Make>
  Cold(double round_bytes, const Make& make) {
    constexpr double kBeyondCaches = 96 << 20;
    const double count = std::clamp(std::ceil(kBeyondCaches / round_bytes), 1.0, 256.0);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(count); ++i) sets_.push_back(make());
  }
  Set& next() { return sets_[++at_ % sets_.size()]; }

 private:
  std::vector<Set> sets_;
  std::size_t at_ = 0;
};

}  // namespace tessera::app
