// SPDX-License-Identifier: Apache-2.0
// A few rows of the gradient test in place of all.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/train/gradient_case.hpp"

namespace tessera::test {

struct Spread {
  std::vector<GradientCase> rows;
  std::size_t pairs = 0;      ///< of properties that meet in some of these rows
  std::size_t all_pairs = 0;  ///< that meet in some of those to choose from
};

/// At most `count` of `rows` in which as many pairs of properties meet as the greedy choice finds
/// (Cohen et al., The AETG system, 1997). Properties are the words of a row's name: degrees,
/// schedule, policies, type. Deterministic.
Spread spread_of(const std::vector<GradientCase>& rows, std::size_t count);

}  // namespace tessera::test
