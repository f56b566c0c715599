// SPDX-License-Identifier: Apache-2.0
// Every reason for which `train` would refuse a job, all at once: without MPI, without the job's
// ranks, and without memory for its model.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/config/resolve.hpp"

namespace tessera::train {

/// The fewest ranks that a job's degrees need, with 1 for those that are -1, or as many as its
/// experts need.
int fewest_ranks(const config::Parallelism& degrees);

/// Keeps what jobs share, models and what their files say, so that the points of a sweep cost
/// little more than one job.
class JobCheck {
 public:
  enum class Files : std::uint8_t {
    looked_at,  ///< data, tokenizer and weights must be there
    ignored,    ///< they are on another machine; only model.hf_config is read
  };
  explicit JobCheck(Files files);
  ~JobCheck();

  /// Appends to `job.problems` what `train` would refuse on `ranks` ranks; 0 = the fewest. Problems
  /// of a key that was misread, or that follow from one that is listed already, are left out.
  void find_problems(config::Reading& job, int ranks = 0);

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace tessera::train
