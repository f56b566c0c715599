// Which experts a token goes to, and with what weight.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>

namespace tessera::model {

enum class ScoreFunction : std::uint8_t { softmax, sigmoid };

struct RoutingRule {
  std::int64_t experts = 8, top_k = 2;
  ScoreFunction score = ScoreFunction::softmax;
  std::int64_t groups = 0;       ///< > 0: experts are this many groups, and only the best `kept_groups` are looked at;
  std::int64_t kept_groups = 0;  ///< a group is as good as its two best scores together (DeepSeek-V3, arXiv:2412.19437)
  bool normalise = false;        ///< weights of a token sum to 1 (before `scale`)
  double scale = 1;
  bool before_experts = false;  ///< weights multiply the experts' input, not their output
  bool forced_even = false;     ///< experts in turn, whatever the scores (debug.moe_force_load_balance)
};

struct Routing {
  at::Tensor weights;        ///< [T, K]
  at::Tensor chosen;         ///< [T, K] int64
  at::Tensor probabilities;  ///< [T, E], each row's sum is 1
};

/// From logits [T, E] in float32 or float64. `bias` [E], if defined, is added to scores for the choice only
/// (https://arxiv.org/abs/2408.15664).
Routing route(const at::Tensor& logits, const at::Tensor& bias, const RoutingRule& rule);

/// Loss-free balancing: d = rate * sign(mean(load) - load); bias += d - mean(d). `load` [E]: tokens of each expert.
void balance_bias(at::Tensor bias, const at::Tensor& load, double rate);

}  // namespace tessera::model
