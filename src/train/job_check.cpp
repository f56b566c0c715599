// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/job_check.hpp"

#include "named_files.hpp"

namespace tessera::train {

std::int64_t JobCheck::find_problems(config::Reading& job, int ranks) {
  if (!job.whole) return 0;
  const std::int64_t vocabulary =
      files_ == Files::looked_at ? check_named_files(job, vocabularies_) : 0;
  planner_.plan(job, ranks, vocabulary);
  return vocabulary;
}

}  // namespace tessera::train
