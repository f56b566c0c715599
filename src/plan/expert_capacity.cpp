// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/expert_capacity.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::plan {

std::int64_t rows_for_each_rank(double factor, const ExpertChoices& choices) {
  const auto [tokens, top_k, experts, ranks] = choices;
  const double even = static_cast<double>(tokens * top_k) / static_cast<double>(ranks);
  const std::int64_t most = tokens * std::min(top_k, experts / ranks);
  return static_cast<std::int64_t>(std::min(std::ceil(factor * even), static_cast<double>(most)));
}

}  // namespace tessera::plan
