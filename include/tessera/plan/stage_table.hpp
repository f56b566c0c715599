// SPDX-License-Identifier: Apache-2.0
// What a split into pipeline stages costs and what it gains, as a table for people.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/stage_split.hpp"
#include "tessera/schedule/stage_map.hpp"

namespace tessera::plan {

struct StageTableOptions {
  std::int64_t seq = 1;                ///< positions of a sequence
  std::int64_t microbatch_tokens = 1;  ///< of all tensor-parallel ranks
  std::int64_t element_bytes = 4;      ///< of what crosses a cut
  double flops_per_second = 0;         ///< of the ranks that share a stage, together; assumed
  double bytes_per_second = 0;         ///< between two stages; assumed
};

/// One line a stage: its rank in the pipeline, cells, parameters, forward and backward FLOPs of a
/// microbatch and their share of the slowest stage's, the bytes that cross the cut after it in each
/// direction. Below it one line for each cut inside a block: the seconds that the slowest stage
/// gains over the better of the two nearest cuts between blocks, the seconds that the additional
/// bytes take, and a warning where it loses.
std::string stage_table(const model::ModelSpec& model, const StageRanges& ranges,
                        const schedule::StageMap& map, const StageTableOptions& options);

}  // namespace tessera::plan
