// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/job_check.hpp"

#include "named_files.hpp"
#include "sample_check.hpp"
#include "tessera/planner/automatic.hpp"

namespace tessera::inputs {

std::int64_t JobCheck::find_problems(config::Reading& job, int ranks) {
  if (!job.whole) return 0;
  const bool reads = files_ == Files::looked_at;
  const std::int64_t vocabulary =
      files_ == Files::ignored ? 0 : check_named_files(job, found_, reads);
  planner::choose_values(job, ranks, vocabulary);
  const auto plan = planner_.plan(job, ranks, vocabulary);
  if (plan && reads) check_samples(job, *plan);
  return vocabulary;
}

}  // namespace tessera::inputs
