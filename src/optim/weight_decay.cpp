// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/weight_decay.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/name_pattern.hpp"

namespace tessera::optim {
namespace {

double checked(double decay) {
  require(decay >= 0.0, ExitCode::usage, "weight decay is {}; it must not be negative", decay);
  return decay;
}

}  // namespace

WeightDecay::WeightDecay(double base, const std::vector<std::pair<std::string, double>>& overrides)
    : base_(checked(base)) {
  for (const auto& [pattern, decay] : overrides) {
    require_pattern(pattern, "weight decay of parameters");
    overrides_.emplace_back(pattern, checked(decay));
  }
}

double WeightDecay::of(std::string_view fqn) const {
  for (const auto& [pattern, decay] : overrides_)
    if (matches(pattern, fqn)) return decay;
  return base_;
}

}  // namespace tessera::optim
