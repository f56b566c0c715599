// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/job_check.hpp"

#include "named_files.hpp"
#include "tessera/planner/automatic.hpp"

namespace tessera::inputs {

std::int64_t JobCheck::find_problems(config::Reading& job, int ranks) {
  if (!job.whole) return 0;
  const std::int64_t vocabulary =
      files_ == Files::looked_at ? check_named_files(job, vocabularies_) : 0;
  planner::choose_values(job, ranks, vocabulary);
  planner_.plan(job, ranks, vocabulary);
  return vocabulary;
}

}  // namespace tessera::inputs
