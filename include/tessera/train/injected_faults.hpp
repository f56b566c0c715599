// debug.inject_faults: faults on purpose, to see what a job does about them before they come by themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/parallel/stages.hpp"

namespace tessera::train {

class InjectedFaults {
 public:
  /// Each of `entries` is STEP:KIND:RANK (steps from 1). Kinds: nan (a gradient of that rank is not a number), flip (a
  /// bit of one of its parameters is wrong from then on), freeze (it stops without a word), die (it is gone).
  /// Throws Error(usage) for anything else, and for a rank that is not there.
  InjectedFaults(const std::vector<std::string>& entries, int world);

  /// When the gradients of `step` are there; each entry once in the life of this process.
  void strike(std::int64_t step, int rank, parallel::Stages& stages);

 private:
  enum class Kind : std::uint8_t { nan, flip, freeze, die };
  struct Entry {
    std::int64_t step;
    Kind kind;
    int rank;
  };
  std::vector<Entry> entries_;
};

}  // namespace tessera::train
