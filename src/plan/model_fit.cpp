// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/model_fit.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/name_pattern.hpp"
#include "tessera/plan/placement.hpp"
#include "tessera/plan/stage_units.hpp"

namespace tessera::plan {
namespace {

using mesh::Axis;

void require_divides(std::int64_t value, const char* what, int degree, const char* key) {
  require(value % degree == 0, ExitCode::usage,
          "{} {} cannot be shared by {} {}; choose a divisor of {}", what, value, key, degree,
          value);
}

/// What tensor parallelism cuts can be cut into this many pieces. place() relies on it.
void check_pieces(const model::ModelSpec& model, int tp) {
  for (const model::ParamSpec& spec : model.params) {
    if (spec.max_pieces > 0 && spec.max_pieces < tp) continue;
    const int dim = tp_dimension(spec.placement);
    if (dim < 0 || model::counts_experts(spec.placement)) continue;
    const std::int64_t extent = spec.global_shape[static_cast<std::size_t>(dim)];
    require(extent % tp == 0, ExitCode::usage,
            "{} has {} rows or columns to share, which tensor_parallel_degree {} does not divide; "
            "choose a divisor of {}",
            spec.fqn, extent, tp, extent);
  }
}

}  // namespace

void check_tensor_parallel_fits(const model::ModelSpec& model, int tp) {
  const model::Dimensions& d = model.dimensions;
  require_divides(d.heads, "attention heads", tp, "tensor_parallel_degree");
  require(d.kv_heads % tp == 0 || tp % d.kv_heads == 0, ExitCode::usage,
          "key-value heads {} cannot be shared by tensor_parallel_degree {}; choose a divisor of "
          "{}, or a multiple "
          "that divides {} heads",
          d.kv_heads, tp, d.kv_heads, d.heads);
  require_divides(d.hidden, "feed-forward size", tp, "tensor_parallel_degree");
  require_divides(d.vocab, "vocabulary", tp, "tensor_parallel_degree");
  check_pieces(model, tp);
}

void check_experts_fit(const model::ModelSpec& model, const mesh::Layout& layout) {
  const int ep = layout.expert_degree();
  require((ep == 1 && !layout.experts_cut_by_tp()) || !model.mixtures.empty(), ExitCode::usage,
          "{} has no experts; set expert_parallel_degree and expert_tensor_parallel_degree to 1",
          model.name);
  for (const model::MixtureSpec& mixture : model.mixtures)
    require_divides(mixture.experts, "experts", ep, "expert_parallel_degree");
  if (!layout.experts_cut_by_tp()) return;
  for (const model::ParamSpec& spec : model.params)
    if (spec.placement == model::Placement::expert_column)
      require_divides(spec.global_shape[1], "features of an expert", layout.degree(Axis::tp),
                      "expert_tensor_parallel_degree");
}

void check_routed_tokens(const model::ModelSpec& model, const mesh::Layout& layout,
                         const BatchPlan& batch, bool sequence_parallel) {
  if (sequence_parallel || model.mixtures.empty() || layout.experts_cut_by_tp()) return;
  require_divides(batch.microbatch_rows * batch.cut.positions(),
                  "tokens of a microbatch (each rank routes its own)", layout.degree(Axis::tp),
                  "tensor_parallel_degree");
}

void require_freezes(const model::ModelSpec& model, const std::string& pattern) {
  std::vector<std::string> names;
  for (const model::ParamSpec& spec : model.params) names.push_back(spec.fqn);
  require_matches(pattern, names, "training.freeze");
}

void require_trains(const model::ModelSpec& model, const std::vector<std::string>& freeze) {
  const bool trains = std::ranges::any_of(
      model.params, [&](const model::ParamSpec& spec) { return !is_frozen(spec, freeze); });
  require(trains, ExitCode::usage,
          "training.freeze matches every parameter of {}, so that nothing is left to train",
          model.name);
}

}  // namespace tessera::plan
