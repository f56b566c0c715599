// SPDX-License-Identifier: Apache-2.0
// A job without data can be planned.
#pragma once

#include "tessera/config/job_config.hpp"

namespace tessera::app {

inline bool names_data(const config::JobConfig& job) {
  return job.training.dataset_path || !job.training.mixture.empty();
}

/// What stands for data that nobody reads.
inline void name_data(config::JobConfig& job) {
  if (!names_data(job)) job.training.dataset_path = "not read";
  if (!job.validation.dataset_path && job.validation.split == 0) job.validation.enable = false;
}

}  // namespace tessera::app
