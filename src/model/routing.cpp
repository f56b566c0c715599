// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/routing.hpp"

#include <limits>

namespace tessera::model {
namespace {

using at::Tensor;

/// Scores with those of all but the best groups at minus infinity.
Tensor within_best_groups(const Tensor& scores, const RoutingRule& rule) {
  const Tensor grouped = scores.view({scores.size(0), rule.groups, -1});
  const Tensor worth = std::get<0>(grouped.topk(2, -1)).sum(-1);
  const Tensor kept = std::get<1>(worth.topk(rule.kept_groups, -1, true, false));
  const Tensor dropped = at::ones_like(worth, at::kBool).scatter_(1, kept, false);
  return grouped.masked_fill(dropped.unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .view(scores.sizes());
}

/// No gradient passes a choice.
Tensor choose(const Tensor& scores, const Tensor& bias, const RoutingRule& rule) {
  at::NoGradGuard no_grad;
  const std::int64_t tokens = scores.size(0);
  if (rule.forced_even) return even_choices(tokens, rule, scores.device());
  Tensor merit = bias.defined() ? scores + bias.to(scores.scalar_type()) : scores;
  if (rule.groups > 0) merit = within_best_groups(merit, rule);
  return std::get<1>(merit.topk(rule.top_k, -1, true, false));
}

}  // namespace

Routing route(const Tensor& logits, const Tensor& bias, const RoutingRule& rule) {
  const bool sigmoid = rule.score == ScoreFunction::sigmoid;
  const Tensor scores = sigmoid ? at::sigmoid(logits) : at::softmax(logits, -1);
  Routing routing;
  routing.chosen = choose(scores, bias, rule);
  routing.weights = scores.gather(1, routing.chosen);
  if (rule.normalise) routing.weights = routing.weights / (routing.weights.sum(-1, true) + 1e-20);
  routing.weights = routing.weights * rule.scale;
  routing.probabilities = sigmoid ? scores / (scores.sum(-1, true) + 1e-20) : scores;
  return routing;
}

Tensor even_choices(std::int64_t tokens, const RoutingRule& rule, at::Device device) {
  return at::arange(tokens * rule.top_k, at::TensorOptions(at::kLong).device(device))
      .remainder(rule.experts)
      .view({tokens, rule.top_k});
}

/// LibTorch's bincount asks a device for the largest value.
Tensor count_choices(const Tensor& chosen, std::int64_t experts) {
  const at::NoGradGuard no_grad;
  const Tensor choices = chosen.flatten();
  if (choices.is_cpu()) return at::bincount(choices, {}, experts);
  return at::zeros({experts}, choices.options()).scatter_add_(0, choices, at::ones_like(choices));
}

void balance_bias(Tensor bias, const Tensor& load, double rate) {
  at::NoGradGuard no_grad;
  const Tensor tokens = load.to(bias.device(), at::kDouble);
  const Tensor step = rate * (tokens.mean() - tokens).sign();
  bias.add_((step - step.mean()).to(bias.scalar_type()));
}

}  // namespace tessera::model
