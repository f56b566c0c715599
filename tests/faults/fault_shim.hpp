// SPDX-License-Identifier: Apache-2.0
// Makes the N-th file call below a folder go wrong, or ends the process right after it. For tests
// only.
//
// The library stands in front of libc for a program that links it, and for any program that has it
// in LD_PRELOAD; then the environment says what to do, in each rank that is listed (Open MPI's
// number; no list = all of them):
//   TESSERA_FAULT="nth=12 kind=stop ranks=1,3 folder=/tmp/run/checkpoint"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::faults {

enum class Kind : std::uint8_t {
  none,         ///< only counts
  fail,         ///< returns -1 with `error_number`, undone (a close is done: so it is on Linux)
  short_write,  ///< a write takes half of its bytes; other calls are as always
  slow,         ///< done after `delay_microseconds`
  stop,         ///< done, and then SIGKILL
};

struct Plan {
  std::string folder;    ///< only calls for paths in this folder, or for itself, count
  std::int64_t nth = 0;  ///< from 1
  Kind kind = Kind::none;
  int error_number = 0;
  unsigned delay_microseconds = 0;
};

/// One call that was made below the folder: "pwrite", and the path as it was then; `to` is
/// rename's.
struct Call {
  std::string name, path, to;
};

/// From now on counts the calls below the plan's folder, and remembers them.
void arm(const Plan& plan);
/// Stops counting; the calls since arm(), the one that went wrong too.
std::vector<Call> disarm();

}  // namespace tessera::faults
