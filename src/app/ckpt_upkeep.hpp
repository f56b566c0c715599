// SPDX-License-Identifier: Apache-2.0
// tessera ckpt diff | prune | reshard.
#pragma once

#include <string>

#include "tessera/checkpoint/retention.hpp"

namespace tessera::app {

/// Prints what differs; 0 when tensors, step and state are equal, 1 when not, as diff(1).
int diff_checkpoints(const std::string& a, const std::string& b);
int prune_checkpoints(const std::string& argument, const checkpoint::PruneOptions& options,
                      bool dry_run);
int reshard_checkpoint(const std::string& from, const std::string& to, int files);

}  // namespace tessera::app
