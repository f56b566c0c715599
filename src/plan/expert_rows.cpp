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
  const auto [tokens, top_k, experts, ranks] = choices;
  const auto all = static_cast<double>(ranks);
  return rounded_up(factor * static_cast<double>(tokens) * reached(all, top_k) / all, tokens);
}

double reached(double targets, std::int64_t top_k) {
  return targets * (1 - std::pow(1 - 1 / targets, static_cast<double>(top_k)));
}

}  // namespace tessera::plan
