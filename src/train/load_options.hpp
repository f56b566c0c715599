// SPDX-License-Identifier: Apache-2.0
// How a run's choice of what to load is said to component checkpoint.
#pragma once

#include "tessera/checkpoint/load.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/checkpoint_plan.hpp"

namespace tessera::train {

/// For loading the model's tensors and, unless that is excluded, the optimizer's: names of another
/// model are refused or shown as the policy says, and a tied output layer where the model has one
/// of its own, or the other way round, is refused with a message. The model must outlive the
/// result.
checkpoint::LoadOptions load_options(const plan::LoadChoice& choice, const model::ModelSpec& model);

}  // namespace tessera::train
