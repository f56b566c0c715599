// SPDX-License-Identifier: Apache-2.0
// debug.inject_faults: faults on purpose, to see what a job does about them before they come by
// themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::plan {

/// One entry of the list, STEP:KIND:RANK or STEP:KIND:RANK:CALL (steps and calls from 1).
struct InjectedFault {
  /// Those from `freeze` on may act in a call, those from `skip` on only there.
  enum class Kind : std::uint8_t {
    nan,     ///< a gradient of the rank is not a number
    flip,    ///< a bit of one of its parameters is wrong from then on
    spike,   ///< its parameters grow 64 times, so that the loss of the next step jumps
    slow,    ///< from then on, it comes 40 ms late in each step
    freeze,  ///< it stops without a word
    die,     ///< it is gone
    memory,  ///< it allocates more than there is on the device
    skip,    ///< it leaves the call out
    shape,   ///< it calls with one element too few
    order,   ///< it enters another communicator first
  };
  std::int64_t step = 0;
  Kind kind = Kind::nan;
  int rank = 0;
  std::int64_t call = 0;  ///< which collective call of the step; 0: when the gradients are there
};

/// Throws Error(usage) for text that is not an entry, for a rank that `ranks` do not have, and for
/// a step after `steps`.
std::vector<InjectedFault> injected_faults(const std::vector<std::string>& entries, int ranks,
                                           std::int64_t steps);

}  // namespace tessera::plan
