// SPDX-License-Identifier: Apache-2.0
// The files that a job names: are they there, and of the kind that the job says.
#pragma once

#include <cstdint>
#include "tessera/config/resolve.hpp"
#include "tessera/inputs/job_check.hpp"

namespace tessera::inputs {

/// Complains of data, tokenizer and weights that are not there or cannot be read, as a run would.
/// Reads the beginnings of texts if `reads`. Returns the vocabulary of the training data, 0 where
/// that is not known. `found` keeps what was read for the next job.
std::int64_t check_named_files(config::Reading& job, FoundInFiles& found, bool reads);

}  // namespace tessera::inputs
