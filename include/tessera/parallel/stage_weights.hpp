// SPDX-License-Identifier: Apache-2.0
// The weights of one pipeline stage on this rank: shard groups, buffers, and their initial values.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/parallel/stage_options.hpp"
#include "tessera/plan/stage_units.hpp"

namespace tessera::parallel {

/// Parameters of this rank; their groups own them.
using Params = std::vector<ShardedParam*>;

/// A weight that the first and the last stage of a pipeline use.
struct TiedWeight {
  int holders = 2;                   ///< pipeline ranks that have one of these stages
  const ShardGroup* home = nullptr;  ///< its group in the first stage, if that is on this rank too
};

/// What a rank holds of the model.
struct Holdings {
  Params params;
  std::vector<at::Tensor> buffers;  ///< by buffer of the model; undefined where other ranks hold it
};

class StageWeights {
 public:
  /// Of cells [cells.begin, cells.end()) of `model`. All references must outlive this. Throws
  /// Error(usage) for a pattern of StageOptions::freeze that matches no parameter of the model.
  StageWeights(const model::ModelSpec& model, Range cells, mesh::DeviceMesh& mesh,
               const StageOptions& options, const TiedWeight& tied);

  /// Makes the groups of a unit, or of the part of it that the stage has: plan::weight_groups().
  /// Units that use a tied weight share its group.
  std::vector<ShardGroup*> make_groups(const model::UnitSpec& unit);
  const std::vector<std::unique_ptr<ShardGroup>>& groups() const { return groups_; }
  /// The group of a weight that another stage uses too; null if there is none.
  const ShardGroup* tied() const { return tied_; }
  /// As Model::buffers, undefined where no cell of the stage uses them.
  std::vector<at::Tensor>& buffers() { return buffers_; }
  /// Without a tied one that has its home in another stage of this rank. Masters may be written
  /// until the next step begins: kept copies are stale, and so are scales, which ranks then agree
  /// on again. So all ranks call this, or none, before end_step().
  Params params() const;
  /// Those of params() that are not frozen.
  Params trained_params() const;
  Holdings holdings() const { return {params(), buffers_}; }

  /// Draws the initial values of every parameter from (seed, fqn, global index): no communication,
  /// any mesh, the same bits.
  void initialize(std::uint64_t seed);
  /// Frees gathered weights.
  void end_step(StepEnd how = StepEnd::done);
  /// All_gathers and bytes received so far.
  GatherCount gather_count() const;

 private:
  bool whole_model() const;
  void make_buffers();
  ShardGroup* group_of(const model::ParamSpec* param) const;
  plan::PlacementOptions placement_options(bool tied) const;
  ShardGroup* make_group(const plan::WeightGroup& weights);
  WeightScales& scales();

  const model::ModelSpec& model_;
  Range cells_;
  mesh::DeviceMesh& mesh_;
  const StageOptions& options_;
  TiedWeight tied_weight_;
  std::optional<kernels::SideStream> copies_;  ///< of groups that are off-loaded
  std::optional<WeightScales> scales_;         ///< of weights that are gathered in bytes
  std::vector<std::unique_ptr<ShardGroup>> groups_;
  const ShardGroup* tied_ = nullptr;
  std::vector<at::Tensor> buffers_;
};

}  // namespace tessera::parallel
