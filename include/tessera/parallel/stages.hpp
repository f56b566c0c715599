// SPDX-License-Identifier: Apache-2.0
// All pipeline stages of one rank.
#pragma once

#include <memory>
#include <vector>

#include "tessera/parallel/stage.hpp"
#include "tessera/plan/stage_split.hpp"
#include "tessera/schedule/stage_map.hpp"

namespace tessera::parallel {

/// This rank's place in its pipeline.
inline schedule::PipelineRank pipeline_rank(const mesh::DeviceMesh& mesh) {
  return schedule::PipelineRank(mesh.coord(mesh::Axis::pp));
}

class Stages {
 public:
  /// Those of `ranges` that `map` puts on this rank of the mesh's pipeline. The model must outlive
  /// them. Collective over the mesh.
  Stages(const model::Model& model, const plan::StageRanges& ranges, const schedule::StageMap& map,
         mesh::DeviceMesh& mesh, const StageOptions& options);

  const schedule::StageMap& map() const { return map_; }
  const StageOptions& options() const { return options_; }
  /// By its number in the pipeline; it must be on this rank.
  Stage& at(schedule::StageIndex stage);

  /// See Stage.
  void on_high_water(const std::function<void()>& look);
  /// Sequences of a microbatch from the next step on.
  void set_batch(std::int64_t batch);
  /// All stages of the rank share it in equal parts.
  void set_reshard_budget(std::int64_t bytes);
  std::int64_t scratch_bytes(int microbatches) const;
  void initialize(std::uint64_t seed);
  void begin_step(int microbatches);
  /// See GradientReducer::finish().
  void finish_gradients();
  void end_step(StepEnd how = StepEnd::done);
  GatherCount gather_count() const;
  /// Of the step, whose counts are forgotten. Collective over the ranks of the stages.
  ExpertFigures take_expert_figures();
  /// Evens out such loads.
  void balance_experts(const std::vector<at::Tensor>& loads);
  std::int64_t kept_bytes();
  /// What the stages have allocated now on the device of forward and backward; activations are not
  /// counted.
  MemoryKinds memory() const;
  /// Of all stages, in the order of the model; a tied parameter of two of them once.
  /// Masters may be written until the next step begins: see StageWeights::params().
  Params params();
  Params trained_params();
  Holdings holdings();
  std::vector<ShardGroup*> groups();

 private:
  schedule::StageMap map_;
  StageOptions options_;  ///< of all stages, which refer to them
  std::vector<schedule::StageIndex> numbers_;
  GradientReducer reducer_;
  std::vector<std::unique_ptr<Stage>> stages_;  ///< the numbers_[i]-th of the pipeline
};

}  // namespace tessera::parallel
