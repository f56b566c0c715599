// SPDX-License-Identifier: Apache-2.0
// Which cells each pipeline stage holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/indexed_vector.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/schedule/indexes.hpp"

namespace tessera::plan {

/// Stage i holds cells [ranges[i].begin, ranges[i].end()) of Model::cells; together they are all of
/// them, in order.
using StageRanges = IndexedVector<schedule::StageIndex, Range>;

/// TorchTitan's rule: the embedding counts as `first_less` blocks and the output as `last_less`;
/// the rest is spread evenly, earlier stages taking one more: 32 layers on 4 stages give 8, 9,
/// 8, 7. A stage may hold no block. Throws Error(usage) when there are more stages than that can
/// fill.
StageRanges split_by_layers(const model::ModelSpec& model, int stages, std::int64_t first_less,
                            std::int64_t last_less);

/// Cuts in front of the named cells, in order: a block ("layers.4"), or a cell of one
/// ("layers.9.attention.wo"); wq, wk, wv and w1, w3 name the cell that multiplies by them. Throws
/// Error(usage), with suggestions for a name that is not there.
StageRanges split_at(const model::ModelSpec& model, const std::vector<std::string>& names);

/// TorchTitan's module_fqns_per_model_part: the blocks and cells of each stage by name. Throws
/// Error(usage) where they are not all of the model, each once and in order.
StageRanges split_by_modules(const model::ModelSpec& model,
                             const std::vector<std::vector<std::string>>& parts);

/// Where a balanced split may cut.
enum class Granularity : std::uint8_t { blocks, cells };

/// The split whose slowest stage is fastest, and among those the one that moves least across its
/// cuts. `costs`: of each cell, in any unit. Throws Error(usage) when there are more stages than
/// places to cut.
StageRanges split_balanced(const model::ModelSpec& model, int stages, std::span<const double> costs,
                           Granularity granularity);

/// forward_flops() of every cell.
std::vector<double> flops_of_cells(const model::ModelSpec& model, std::int64_t seq);

/// Elements that cross a cut in front of `cell` for each token, over all tensor-parallel ranks.
std::int64_t crossing_features(const model::CellSpec& cell);

}  // namespace tessera::plan
