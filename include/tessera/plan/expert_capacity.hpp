// SPDX-License-Identifier: Apache-2.0
// How many rows travel to experts where their number is fixed
// (parallelism.expert_parallel_capacity_factor).
#pragma once

#include <cstdint>

namespace tessera::plan {

/// What a rank sends in one layer: `tokens`, each to `top_k` of `experts`, which `ranks` share in
/// equal parts.
struct ExpertChoices {
  std::int64_t tokens = 0, top_k = 1, experts = 1, ranks = 1;
};

/// Rows for each rank: `factor` (at least 1) times an even share of the choices, but no more than
/// can choose the experts of one rank.
std::int64_t rows_for_each_rank(double factor, const ExpertChoices& choices);

}  // namespace tessera::plan
