// SPDX-License-Identifier: Apache-2.0
// Weight decay per parameter: a base value and overrides by patterns of the fqn.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::optim {

class WeightDecay {
 public:
  /// overrides: (ECMAScript regular expression searched in the fqn, weight decay); the first that
  /// matches wins. Throws Error(usage) for a broken pattern or a negative value.
  explicit WeightDecay(double base,
                       const std::vector<std::pair<std::string, double>>& overrides = {});

  double of(std::string_view fqn) const;

 private:
  double base_;
  std::vector<std::pair<std::string, double>> overrides_;
};

}  // namespace tessera::optim
