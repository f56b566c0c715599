// SPDX-License-Identifier: Apache-2.0
// What a run saves, and what it starts from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::plan {

/// What happens where a checkpoint and the model differ in names, shapes or types.
enum class Mismatch : std::uint8_t {
  strict,  ///< the load is refused
  warn,    ///< what differs is shown, and keeps its initial values
  ignore,
};

/// What a run takes of a checkpoint.
struct LoadChoice {
  std::int64_t step = -1;  ///< which checkpoint; -1: the newest
  bool saves = true;       ///< the run writes checkpoints of its own into the same folder
  bool optimizer = true;   ///< moments and the optimizer's step count
  bool schedule = true;    ///< the position in the learning rate's schedule
  bool data = true;        ///< the position in the data
  /// patterns of parameters and buffers that keep their initial values
  std::vector<std::string> excluded;
  Mismatch mismatch = Mismatch::strict;

  /// Throws Error(usage) for a pattern that matches nothing of the model.
  static LoadChoice of(const config::Checkpoint& options, const model::ModelSpec& model);
  /// For the run's own checkpoints. Where it starts from another's weights, all but `dataloader` is
  /// for that start: a job that is restarted must not forget what it has trained since.
  static LoadChoice of_own(const config::Checkpoint& options, const model::ModelSpec& model);

  /// True when values may be left as they were before the load.
  bool is_partial() const { return !excluded.empty() || mismatch != Mismatch::strict; }
  bool excludes(std::string_view fqn) const;
  /// The same of a name in a checkpoint, "optimizer/exp_avg/layers.0.wq".
  bool skips(std::string_view name) const;
  /// "output.weight, optimizer"; "" when all is loaded.
  std::string left_out() const;
};

/// What another run or program wrote.
struct InitialState {
  std::filesystem::path path;
  bool in_hf = false;   ///< Hugging Face's format
  bool branch = false;  ///< not weights alone: the run continues from all of the other's state
  bool named = false;   ///< on the command line, rather than in the job's file
};

/// Which weights a job begins with.
enum class WeightOrigin : std::uint8_t {
  own,             ///< a checkpoint in the job's folder
  initial_state,   ///< WeightOrigins::from
  initial_values,  ///< drawn
};

/// Where a job may take its weights from. Every command that loads weights asks choose().
struct WeightOrigins {
  bool resumes = false;               ///< from the run's own checkpoints
  std::filesystem::path checkpoints;  ///< the folder of these
  std::int64_t step = -1;             ///< load_step; -1: the newest
  bool step_named = false;            ///< on the command line, rather than in the job's file
  std::optional<InitialState> from;   ///< where none is there

  static WeightOrigins of(const config::Resolved& resolved);
  /// `has_own`: at least one step is in `checkpoints`. Training takes own checkpoints before all
  /// else, if it resumes. Inference takes what the command line names, else own checkpoints, else
  /// `from`. Throws Error(usage) if inference is told a step and other weights.
  WeightOrigin choose(config::JobUse use, bool has_own) const;
};

struct LoadPlan : WeightOrigins {
  LoadChoice own;      ///< of the run's own checkpoints
  LoadChoice initial;  ///< of `from`
};

/// How many files a checkpoint has.
enum class ShardFiles : std::uint8_t {
  one_per_rank,
  one_per_node,
  single,
};

struct SavePlan {
  bool enabled = false;         ///< checkpoints are written
  std::int64_t interval = 500;  ///< steps; 0: as often as failures make it worth while
  double mtbf_hours = 0;        ///< between failures of the job; 0: as usual for its ranks
  bool first_step = false;      ///< one after step 1
  bool seed_only = false;       ///< the initial values, and the run ends
  bool last_model_only = false, last_in_hf = false;
  DType export_dtype = DType::f32;  ///< of a last checkpoint with the model only
  bool waits = true;                ///< training waits until the files are durable
  int keep_latest_k = 10;           ///< 0: all
  std::int64_t keep_every = 0;      ///< steps that are multiples are kept permanently; 0: none
  ShardFiles files = ShardFiles::one_per_rank;
};

}  // namespace tessera::plan
