// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/expert_rows.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::plan {
namespace {

std::int64_t rounded_up(double rows, std::int64_t most) {
  return static_cast<std::int64_t>(std::min(std::ceil(rows), static_cast<double>(most)));
}

}  // namespace

std::int64_t rows_for_each_rank(double factor, const ExpertChoices& choices) {
  const auto [tokens, top_k, experts, ranks] = choices;
  const double even = static_cast<double>(tokens * top_k) / static_cast<double>(ranks);
  return rounded_up(factor * even, tokens * std::min(top_k, experts / ranks));
}

std::int64_t tokens_for_each_rank(double factor, const ExpertChoices& choices) {
  const double share = ranks_of_token(choices) / static_cast<double>(choices.ranks);
  return rounded_up(factor * static_cast<double>(choices.tokens) * share, choices.tokens);
}

/// A rank has none of them with the odds of drawing each from the experts of others.
double ranks_of_token(const ExpertChoices& choices) {
  const auto [tokens, top_k, experts, ranks] = choices;
  const std::int64_t elsewhere = experts - experts / ranks;
  double none = 1;
  for (std::int64_t k = 0; k < top_k; ++k)
    none *= static_cast<double>(std::max<std::int64_t>(0, elsewhere - k)) /
            static_cast<double>(experts - k);
  return static_cast<double>(ranks) * (1 - none);
}

}  // namespace tessera::plan
