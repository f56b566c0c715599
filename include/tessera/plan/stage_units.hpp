// SPDX-License-Identifier: Apache-2.0
// The units of a pipeline stage, the weights that each of them gathers and reduces together, and
// the tensors that cross the stage's ends. Those who run a stage and those who predict it ask here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/placement.hpp"

namespace tessera::plan {

/// A unit, or the part of it that a stage has.
struct UnitPart {
  model::UnitSpec spec;     ///< with the cells of the part
  std::int64_t number = 0;  ///< among the model's units
  bool block = false;       ///< neither the embedding nor [norm, output]
};
/// Of a stage with these cells, in order.
std::vector<UnitPart> unit_parts(const model::ModelSpec& model, Range cells);

/// Parameters of cells [begin, end), by their number in the model.
std::set<int> params_of(const model::ModelSpec& model, std::int64_t begin, std::int64_t end);

/// Does a pattern of training.freeze match its name?
bool is_frozen(const model::ParamSpec& spec, const std::vector<std::string>& freeze);

/// Parameters that are gathered together, and whose gradients are a bucket.
struct WeightGroup {
  std::string name;
  std::vector<int> params;  ///< by their number in the model; at least one
  bool experts = false;     ///< sharded over the ranks that share experts
  bool frozen = false;
  bool tied = false;  ///< one parameter that several units use
};
/// A unit's own parameters form one group, its frozen ones another; so do those of experts. A tied
/// parameter has a group of its own.
std::vector<WeightGroup> weight_groups(const model::ModelSpec& model, const model::UnitSpec& unit,
                                       const std::vector<std::string>& freeze);

/// Elements that one rank's rows of a parameter take in the flat buffers of its group.
std::int64_t flat_elements(const Placement& place);

/// Do microbatches add up in the gradient itself, without a sum over its `shards` ranks? Not where
/// it has another type than the sums (`one_type`), is kept elsewhere, or adds over a fixed tree.
bool adds_in_place(int shards, bool one_type, bool offload, bool tree);

/// Neighbours on the axis of experts' shards among `ranks` neighbours on the axis fsdp. Nothing
/// where some of these share this rank's experts and some do not.
std::optional<int> expert_neighbours(const mesh::Layout& layout, int ranks);

/// One tensor that crosses a cut.
struct Crossing {
  model::Slot slot;
  Shape shape;  ///< on one rank
  DType type;
};
/// What matters in addition to the cut.
struct CrossingOptions {
  int tp = 1;
  bool sequence_parallel = true;
  std::int64_t rows = 1, positions = 1;  ///< of a microbatch, on one rank
  DType compute = DType::f32;
};
/// In front of `cell`.
std::vector<Crossing> crossings(const model::CellSpec& cell, const CrossingOptions& options);

}  // namespace tessera::plan
