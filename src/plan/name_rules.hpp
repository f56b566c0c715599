// SPDX-License-Identifier: Apache-2.0
// Rules for what a job names in its model: units, parameters, layers and tokens.
#pragma once

#include "tessera/config/resolve.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::plan {

/// A problem, or a warning, for each name that the model does not have.
void check_names(config::Reading& job, const model::ModelSpec& model);

}  // namespace tessera::plan
