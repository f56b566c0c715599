// SPDX-License-Identifier: Apache-2.0
// Rules that compare keys with each other. They need neither the number of ranks nor the model.
#pragma once

#include "tessera/config/resolve.hpp"

namespace tessera::plan {

/// Complains of keys that contradict each other, but for those of data. May warn.
void check_keys(config::Reading& job);
/// Those about training and validation data.
void check_data_keys(config::Reading& job);
/// Those about files that a run writes.
void check_file_keys(config::Reading& job);
/// Warns of settings of training that have no effect without another one.
void warn_of_unused_keys(config::Reading& job);
/// Those about types and weights alone, for programs that only use a model.
void check_model_keys(config::Reading& job);

}  // namespace tessera::plan
