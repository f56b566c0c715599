// SPDX-License-Identifier: Apache-2.0
// training.mixture: several sources with weights.
#pragma once

#include <optional>
#include <string>

#include "tessera/config/job_config.hpp"

namespace tessera::config {

/// A source of training data.
struct MixtureEntry {
  std::string path;   ///< a file, a folder of files, or a pattern
  double weight = 1;  ///< above 0; shares are weights over their sum
  std::string name;  ///< in messages and metrics; unless one is given the path's last part, without
                     ///< extension or pattern
};

/// Of a row {path, weight[, name]}; nothing if the path is empty or the weight is not a number
/// above 0.
std::optional<MixtureEntry> mixture_entry(const Strings& row);

}  // namespace tessera::config
