// SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to: the rule. Component `model` applies it.
#pragma once

#include <cstdint>

namespace tessera::model {

enum class ScoreFunction : std::uint8_t { softmax, sigmoid };

struct RoutingRule {
  std::int64_t experts = 8, top_k = 2;
  ScoreFunction score = ScoreFunction::softmax;
  /// > 0: experts are this many groups, and only the best `kept_groups` are looked at; a group is
  /// as good as its two best scores together (DeepSeek-V3, arXiv:2412.19437).
  std::int64_t groups = 0, kept_groups = 0;
  bool normalise = false;  ///< weights of a token sum to 1 (before `scale`)
  double scale = 1;
  bool before_experts = false;  ///< weights multiply the experts' input, not their output
  /// experts in turn, whatever the scores (debug.moe_force_load_balance)
  bool forced_even = false;
};

}  // namespace tessera::model
