// SPDX-License-Identifier: Apache-2.0
// A job without data can be planned.
#pragma once

#include "tessera/config/resolve.hpp"
#include "tessera/inputs/job_check.hpp"

namespace tessera::app {

inline bool names_data(const config::JobConfig& job) {
  return job.training.dataset_path || !job.training.mixture.empty();
}

/// What stands for data that nobody reads.
inline void name_data(config::JobConfig& job) {
  if (!names_data(job)) job.training.dataset_path = "not read";
  if (!job.validation.dataset_path && job.validation.split == 0) job.validation.enable = false;
}

/// JobCheck::find_problems() of a job that may lack data: files must be there if it names any.
inline std::int64_t find_problems_but_data(config::Reading& job, int ranks) {
  using Files = inputs::JobCheck::Files;
  const Files files = names_data(job.resolved.job) ? Files::named : Files::ignored;
  name_data(job.resolved.job);
  return inputs::JobCheck(files).find_problems(job, ranks);
}

}  // namespace tessera::app
