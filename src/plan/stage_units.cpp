// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/stage_units.hpp"

#include <algorithm>
#include <array>

#include "tessera/base/name_pattern.hpp"

namespace tessera::plan {
namespace {

// elements: 64 bytes in bfloat16, and whole vectors in float32
constexpr std::int64_t kAlignment = 32;

/// Units of the whole model that use a parameter: more than one if it is tied.
std::ptrdiff_t users(const model::ModelSpec& model, int param) {
  return std::ranges::count_if(model.units, [&](const model::UnitSpec& unit) {
    return params_of(model, unit.begin, unit.end).contains(param);
  });
}

}  // namespace

/// The first and the last unit of the model are the embedding and [norm, output].
std::vector<UnitPart> unit_parts(const model::ModelSpec& model, Range cells) {
  std::vector<UnitPart> parts;
  const auto count = static_cast<std::int64_t>(model.units.size());
  for (std::int64_t number = 0; number < count; ++number) {
    model::UnitSpec part = model.units[static_cast<std::size_t>(number)];
    part.begin = std::max(part.begin, static_cast<int>(cells.begin));
    part.end = std::min(part.end, static_cast<int>(cells.end()));
    if (part.begin < part.end)
      parts.push_back({std::move(part), number, number > 0 && number + 1 < count});
  }
  return parts;
}

std::set<int> params_of(const model::ModelSpec& model, std::int64_t begin, std::int64_t end) {
  std::set<int> params;
  for (std::int64_t cell = begin; cell < end; ++cell) {
    const std::vector<int>& used = model.cells[static_cast<std::size_t>(cell)].params;
    params.insert(used.begin(), used.end());
  }
  return params;
}

bool is_frozen(const model::ParamSpec& spec, const std::vector<std::string>& freeze) {
  return std::ranges::any_of(
      freeze, [&](const std::string& pattern) { return matches(pattern, spec.fqn); });
}

std::vector<WeightGroup> weight_groups(const model::ModelSpec& model, const model::UnitSpec& unit,
                                       const std::vector<std::string>& freeze) {
  std::array<WeightGroup, 4> kinds{{{unit.name, {}, false, false},
                                    {unit.name + " (frozen)", {}, false, true},
                                    {unit.name + " experts", {}, true, false},
                                    {unit.name + " experts (frozen)", {}, true, true}}};
  std::vector<WeightGroup> groups;
  for (const int param : params_of(model, unit.begin, unit.end)) {
    const model::ParamSpec& spec = model.params[static_cast<std::size_t>(param)];
    const bool experts = model::counts_experts(spec.placement), frozen = is_frozen(spec, freeze);
    if (users(model, param) > 1)
      groups.push_back({spec.fqn, {param}, experts, frozen, true});
    else
      kinds[(experts ? 2U : 0U) + (frozen ? 1U : 0U)].params.push_back(param);
  }
  for (WeightGroup& kind : kinds)
    if (!kind.params.empty()) groups.push_back(std::move(kind));
  return groups;
}

std::int64_t flat_elements(const Placement& place) {
  return chunk_size(place.chunk_rows * place.row_elements(), kAlignment) * kAlignment;
}

bool adds_in_place(int shards, bool one_type, bool offload, bool tree) {
  return shards == 1 && one_type && !offload && !tree;
}

std::optional<int> expert_neighbours(const mesh::Layout& layout, int ranks) {
  const int tp = layout.experts_cut_by_tp() ? 1 : layout.degree(mesh::Axis::tp), near = ranks * tp,
            ep = layout.expert_degree();
  if (near % ep != 0 && ep % near != 0) return std::nullopt;
  return std::max(1, near / ep);
}

std::vector<Crossing> crossings(const model::CellSpec& cell, const CrossingOptions& how) {
  std::vector<Crossing> result;
  for (const model::Live& live : cell.live) {
    Shape shape{how.rows * how.positions};
    if (live.spread == model::Spread::tokens && how.sequence_parallel) shape[0] /= how.tp;
    if (live.spread == model::Spread::heads) shape = {how.rows, how.positions};
    if (live.spread == model::Spread::apart) shape.clear();
    const std::size_t cut = shape.size();
    shape.insert(shape.end(), live.features.begin(), live.features.end());
    if (live.spread == model::Spread::features || live.spread == model::Spread::heads)
      shape[cut] = std::max<std::int64_t>(1, shape[cut] / how.tp);  // few key-value heads: one
    const bool wide = live.slot == model::Slot::balance && how.compute != DType::f64;
    result.push_back({live.slot, std::move(shape), wide ? DType::f32 : how.compute});
  }
  return result;
}

}  // namespace tessera::plan
