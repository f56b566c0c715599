// SPDX-License-Identifier: Apache-2.0
// How tokens travel to experts of other ranks, and how many rows where their number is fixed.
#pragma once

#include <cstdint>

namespace tessera::plan {

struct ExpertRows {
  /// parallelism.expert_parallel_capacity_factor; 0 = as many rows as are chosen.
  double capacity = 0;
  /// A token goes once to each rank where it has experts, as DeepEP sends it; else once for each
  /// expert.
  bool once = false;
};

/// What a rank sends in one layer: `tokens`, each to `top_k` of `experts`, which `ranks` share in
/// equal parts.
struct ExpertChoices {
  std::int64_t tokens = 0, top_k = 1, experts = 1, ranks = 1;
};

/// Rows for each rank: `factor` (at least 1) times an even share of the choices, but no more than
/// can choose the experts of one rank.
std::int64_t rows_for_each_rank(double factor, const ExpertChoices& choices);

/// How many ranks the experts of one token are on, on average over all sets of `top_k` experts.
double ranks_of_token(const ExpertChoices& choices);

/// Tokens for each rank, where a token goes once to it: `factor` times as many as it gets on
/// average, see ranks_of_token(), but no more than there are.
std::int64_t tokens_for_each_rank(double factor, const ExpertChoices& choices);

}  // namespace tessera::plan
