// SPDX-License-Identifier: Apache-2.0
// Do boxes make up a whole, each element once?
//
// The sum of the boxes' indicator functions is that of the whole exactly when their mixed
// derivatives are equal: signed points at the corners. Those are compared by a fingerprint: with
// random numbers h_d(x) modulo a prime, a box that reaches from b to e counts as the product over d
// of h_d(e_d) - h_d(b_d), which is the signed sum over its corners. Two different sums agree with a
// probability below 2^-55 (Schwartz, Zippel), whoever made the file, since the numbers are drawn
// again in each process. No box needs to be kept.
#pragma once

#include <cstdint>

#include "tessera/base/box.hpp"

namespace tessera::checkpoint {

class Cover {
 public:
  void add(const Box& part);
  std::int64_t elements() const { return elements_; }
  /// True when the parts so far make up `whole`, without overlap or gap.
  bool makes_up(const Box& whole) const;

 private:
  std::int64_t elements_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace tessera::checkpoint
