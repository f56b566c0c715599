// SPDX-License-Identifier: Apache-2.0
// parallelism.pipeline_parallel_microbatch_steps: other microbatches from a step on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::config {

/// From step `step` (counted from 1) on, microbatches of `size` sequences.
struct MicrobatchStep {
  std::int64_t step = 0, size = 0;
};

/// Of "STEP:SIZE", two numbers from 1; nothing if it is something else.
std::optional<MicrobatchStep> microbatch_step(std::string_view text);

}  // namespace tessera::config
