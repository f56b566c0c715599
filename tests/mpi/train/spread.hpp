// SPDX-License-Identifier: Apache-2.0
// Which rows of the gradient test run where all of them would take too long.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "mpi/train/gradient_case.hpp"

namespace tessera::test {

struct Spread {
  std::vector<GradientCase> rows;
  std::size_t pairs = 0;      ///< of properties that meet in some of these rows
  std::size_t all_pairs = 0;  ///< that meet in some of those to choose from
};

/// `count` of `rows`, in which as many pairs of properties meet as the greedy choice finds (Cohen
/// et al., The AETG system, 1997), and as many more as are needed so that each property is met. A
/// row has the words of its name (degrees, schedule, policies, type) and lacks those of others.
/// Both are properties. Deterministic.
Spread spread_of(const std::vector<GradientCase>& rows, std::size_t count);

/// Expects equal gradients in a spread, over MPI and strict by turns. Collective over `world`.
void expect_equal_spread(comm::World& world, const std::vector<GradientCase>& rows,
                         std::size_t count);

/// TESSERA_ROWS as the count of a spread: a number, "all", or else `usual`.
std::size_t rows_from_environment(std::size_t usual);

/// The rows in float64, float32 and bfloat16 by turns. Routes of experts may flip in bfloat16, so
/// that mixtures have the other two.
std::vector<GradientCase> in_types_by_turns(std::vector<GradientCase> rows);

}  // namespace tessera::test
