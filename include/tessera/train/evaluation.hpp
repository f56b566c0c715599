// SPDX-License-Identifier: Apache-2.0
// tessera eval on ranks: the loss of saved weights over a job's validation data.
#pragma once

#include "tessera/comm/world.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/on_failure.hpp"
#include "tessera/train/validator.hpp"

namespace tessera::train {

/// The planned model on its mesh over the ranks of `world`, with weights from LoadPlan::from if
/// that is set, else from the latest checkpoint of the run's folder; the loss over the validation
/// data, which the plan must have. No optimizer, no gradient. Collective. Throws Error, on all
/// ranks alike, after a call of `failed`.
ValidationResult evaluate(comm::World& world, const plan::JobPlan& plan, const OnFailure& failed);

}  // namespace tessera::train
