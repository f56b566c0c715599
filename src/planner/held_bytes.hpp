// SPDX-License-Identifier: Apache-2.0
// What the microbatches of a pipeline hold on a rank while its list runs: activations, what I
// leaves for W, and gradients that wait for their reduction.
#pragma once

#include <functional>
#include <vector>

#include "tessera/planner/stack.hpp"
#include "tessera/planner/workload.hpp"
#include "tessera/schedule/action.hpp"

namespace tessera::planner {

/// Of a stage.
struct StageBytes {
  double kept = 0;       ///< of a microbatch, from F to B or I
  double owed = 0;       ///< of a microbatch, from I to W: operands of the products of W
  double gradients = 0;  ///< whole ones, of all microbatches, from the first to the last B or W
  double loss = 0;       ///< of the first microbatch between F and B or I
  double logits = 0;     ///< of each other one
  double working = 0;    ///< of the block that runs
  double reducing = 0;   ///< at least so much in its place: reducing_bytes() of the rank
};
struct BytesOfStages {
  IndexedVector<schedule::StageIndex, StageBytes> stages;
  bool loss_beside_blocks = false;
};
BytesOfStages stage_bytes(const Workload& work, const Stack& stack);

/// By a rank, but for its state and what is gathered.
struct Held {
  double kept = 0, owed = 0, gradients = 0, loss = 0, working = 0;
  double most_kept = 0;  ///< at any time of the step

  double total() const { return kept + owed + gradients + loss + working; }
};

/// What of a stage is there at a time.
struct StageCount {
  schedule::StageIndex stage{0};
  int kept = 0, owed = 0;  ///< microbatches
  bool sums = false;       ///< gradients of microbatches are being added
};
using Moment = std::vector<StageCount>;
Held held_at(const Moment& moment, const BytesOfStages& bytes);

/// Runs the list of a rank, action by action.
class HeldCounts {
 public:
  /// `list`: all that will run in a round. With more rounds, gradients stay from round to round.
  HeldCounts(const std::vector<schedule::StageIndex>& stages, const schedule::ActionList& list,
             int rounds);

  void run(const schedule::Action& action);
  const Moment& now() const { return now_; }
  int kept() const;  ///< of all stages, with what is owed
  int owed() const;

 private:
  std::size_t place_of(schedule::StageIndex stage) const;

  Moment now_;
  std::vector<int> left_;  ///< of each stage: microbatches whose gradients are not there yet
  bool keeps_gradients_;
};

/// What stays on the device of activations, of which so many bytes are kept.
using OnDevice = std::function<double(double kept)>;
OnDevice left_on_device(const Workload& work, const Stack& stack, schedule::PipelineRank rank);

/// The largest sum on the device over a step on `rank`.
Held most_held(const Pipeline& pipeline, schedule::PipelineRank rank, const BytesOfStages& bytes,
               const OnDevice& on_device);

/// Moments of each rank of a pipeline: one of them is that of the most activations, or close to it.
/// `schedule`: null where the pipeline has one rank, or lists of its own.
using RankMoments = std::vector<std::vector<Moment>>;
RankMoments full_moments(const Pipeline& pipeline, const schedule::Traits* schedule);

}  // namespace tessera::planner
