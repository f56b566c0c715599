// SPDX-License-Identifier: Apache-2.0
// Do the mesh and the patterns of a job fit the model?
#pragma once

#include <string>
#include <vector>

#include "tessera/mesh/layout.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/batch_plan.hpp"

namespace tessera::plan {

/// What tensor parallelism cuts can be cut into this many pieces. Throws Error(usage).
void check_tensor_parallel_fits(const model::ModelSpec& model, int tp);
/// The model's experts can be shared out as the mesh wants it. Throws Error(usage).
void check_experts_fit(const model::ModelSpec& model, const mesh::Layout& layout);
/// Where tensor-parallel ranks that all have a microbatch's tokens route a part of them each, the
/// parts are equal. Throws Error(usage).
void check_routed_tokens(const model::ModelSpec& model, const mesh::Layout& layout,
                         const BatchPlan& batch, bool sequence_parallel);

/// Throws Error(usage) if a pattern of training.freeze matches no parameter.
void require_freezes(const model::ModelSpec& model, const std::string& pattern);
/// Throws Error(usage) if the patterns, which require_freezes() has checked, match all parameters.
void require_trains(const model::ModelSpec& model, const std::vector<std::string>& freeze);

}  // namespace tessera::plan
