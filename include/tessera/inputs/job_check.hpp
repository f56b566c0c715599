// SPDX-License-Identifier: Apache-2.0
// Every reason for which `train` would refuse a job, all at once: without MPI, without the job's
// ranks, and without memory for its model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "tessera/base/error.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::inputs {

/// What was read, by the names of data and tokenizer: a vocabulary, or what is wrong with it.
using FoundInFiles = std::map<std::string, std::variant<std::int64_t, Error>>;

/// The rules of component plan, and the files that a job names. Keeps what jobs share, models and
/// what their files say, so that the points of a sweep cost little more than one job.
class JobCheck {
 public:
  enum class Files : std::uint8_t {
    looked_at,  ///< data, tokenizer and weights must be there, and data be enough
    named,      ///< they must be there, but nobody reads samples
    ignored,    ///< they are on another machine; only model.hf_config is read
  };
  explicit JobCheck(Files files) : files_(files) {}

  /// Chooses the values that the job leaves to the planner. Appends to `job.problems` what `train`
  /// would refuse on `ranks` ranks; 0 = the fewest. Problems of a key that was misread, or that
  /// follow from one that is listed already, are omitted. Returns the vocabulary of the training
  /// data, 0 = unknown.
  std::int64_t find_problems(config::Reading& job, int ranks = 0);

 private:
  Files files_;
  plan::Planner planner_;
  FoundInFiles found_;
};

}  // namespace tessera::inputs
