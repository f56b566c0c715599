// SPDX-License-Identifier: Apache-2.0
// How the best variant follows from questions that are asked in order, each with the figures that
// answer it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/search.hpp"

namespace tessera::planner {

struct Question {
  std::string text;
  bool yes = false;
  std::string why;
  std::optional<Option> best;  ///< of the variants that this question adds, if one fits
};

struct Decision {
  std::vector<Question> questions;
  std::optional<Option> choice;  ///< the fastest of all; nothing where none fits
};

/// Asks: does one GPU hold the job; do all, with data parallelism alone; is the batch large enough
/// for that; do expert, tensor, pipeline and context parallelism pay; what is recomputed; does
/// float8 pay. Each axis is tried with those before it. The choice is the best of search().
Decision decide(const VariantSpace& space, const Machine& machine, const Stack& stack);

}  // namespace tessera::planner
