// SPDX-License-Identifier: Apache-2.0
// The columns of a step's record by their names in metrics.jsonl.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/metrics/step_record.hpp"

namespace tessera::metrics {

/// The columns that every record has, but for the step.
std::vector<std::string> column_names();
/// A record's value in a column; NaN where it has none.
double value_in(const StepRecord& record, std::string_view column);

}  // namespace tessera::metrics
