// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/weight_decay.hpp"

#include "tessera/base/error.hpp"

namespace tessera::optim {
namespace {

double checked(double decay) {
  require(decay >= 0.0, ExitCode::usage, "weight decay is {}; it must not be negative", decay);
  return decay;
}

std::regex compiled(const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    fail(ExitCode::usage,
         "\"{}\" is not a regular expression ({}); weight decay overrides are patterns of "
         "parameter names",
         pattern, error.what());
  }
}

}  // namespace

WeightDecay::WeightDecay(double base, const std::vector<std::pair<std::string, double>>& overrides)
    : base_(checked(base)) {
  for (const auto& [pattern, decay] : overrides)
    overrides_.emplace_back(compiled(pattern), checked(decay));
}

double WeightDecay::of(std::string_view fqn) const {
  for (const auto& [pattern, decay] : overrides_)
    if (std::regex_search(fqn.begin(), fqn.end(), pattern)) return decay;
  return base_;
}

}  // namespace tessera::optim
