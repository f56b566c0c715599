// SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to, and with what weight, by a RoutingRule.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/model_spec/routing_rule.hpp"

namespace tessera::model {

struct Routing {
  at::Tensor weights;        ///< [T, K]
  at::Tensor chosen;         ///< [T, K] int64
  at::Tensor probabilities;  ///< [T, E], each row's sum is 1
};

/// From logits [T, E] in float32 or float64. `bias` [E], if defined, is added to scores for the
/// choice only (https://arxiv.org/abs/2408.15664).
Routing route(const at::Tensor& logits, const at::Tensor& bias, const RoutingRule& rule);

/// Choices of experts in turn (RoutingRule::forced_even), [tokens, K] int64. The host knows them.
at::Tensor even_choices(std::int64_t tokens, const RoutingRule& rule, at::Device device);

/// How often each of `experts` was chosen: [experts] int64, on the device of `chosen`, for which
/// the host does not wait.
at::Tensor count_choices(const at::Tensor& chosen, std::int64_t experts);

/// Loss-free balancing: d = rate * sign(mean(load) - load); bias += d - mean(d). `load` [E]: tokens
/// of each expert.
void balance_bias(at::Tensor bias, const at::Tensor& load, double rate);

}  // namespace tessera::model
