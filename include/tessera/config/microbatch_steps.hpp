// SPDX-License-Identifier: Apache-2.0
// parallelism.pipeline_parallel_microbatch_steps: other microbatches from a step on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::config {

/// From step `step` (counted from 1) on, microbatches of `size` sequences.
struct MicrobatchStep {
  std::int64_t step = 0, size = 0;
};

/// Of "STEP:SIZE", two numbers from 1; nothing if it is something else.
std::optional<MicrobatchStep> microbatch_step(std::string_view text);

/// What `entries`, each good and in the order of their steps, say of `step`; `otherwise` before the
/// first of them.
std::int64_t microbatch_size_at(const std::vector<std::string>& entries, std::int64_t step,
                                std::int64_t otherwise);

}  // namespace tessera::config
