// SPDX-License-Identifier: Apache-2.0
// What a run takes of a checkpoint: checkpoint.exclude_from_loading and checkpoint.load_mismatch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/load.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/model/model.hpp"

namespace tessera::train {

struct LoadChoice {
  std::int64_t step = -1;  ///< which checkpoint; -1: the newest
  bool saves = true;       ///< the run writes checkpoints of its own into the same folder
  bool optimizer = true;   ///< moments and the optimizer's step count
  bool schedule = true;    ///< where the learning rate's schedule stands
  bool data = true;        ///< where the data stands
  /// patterns of parameters and buffers that keep their initial values
  std::vector<std::string> excluded;
  checkpoint::Policy mismatch = checkpoint::Policy::strict;

  /// Throws Error(usage) for a pattern that matches nothing of the model.
  static LoadChoice of(const config::Checkpoint& options, const model::ModelSpec& model);
  /// For the run's own checkpoints. Where it starts from another's weights, all but `dataloader` is
  /// for that start: a job that is restarted must not forget what it has trained since.
  static LoadChoice of_own(const config::Checkpoint& options, const model::ModelSpec& model);

  /// True when values may be left as they were before the load.
  bool is_partial() const { return !excluded.empty() || mismatch != checkpoint::Policy::strict; }
  bool excludes(std::string_view fqn) const;
  /// "output.weight, optimizer"; "" when all is loaded.
  std::string left_out() const;
  /// For loading the model's tensors and, unless that is excluded, the optimizer's: names of
  /// another model are refused or shown as the policy says, and a tied output layer where the model
  /// has one of its own, or the other way round, is refused in words.
  checkpoint::LoadOptions options(const model::ModelSpec& model) const;
};

}  // namespace tessera::train
