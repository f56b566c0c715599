// SPDX-License-Identifier: Apache-2.0
// What a job reads to train and to validate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/config/datasets.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/plan/batch_plan.hpp"

namespace tessera::plan {

/// Steps whose rows are read before they are needed, and the threads that read them.
struct ReadAheadPlan {
  int steps = 0, threads = 1;
};

struct ValidationPlan {
  std::optional<std::string> path;  ///< of data of its own; none: what is held out
  config::Dataset dataset;
  std::int64_t seq_len = 0;
  std::int64_t freq = 10;               ///< steps from one validation to the next
  std::int64_t steps = -1;              ///< batches; -1: all data
  std::optional<std::int64_t> samples;  ///< sequences of the whole job, in place of `steps`
  BatchPlan batch;
  ReadAheadPlan read_ahead;
};

struct DataPlan {
  config::Dataset dataset;
  std::vector<config::MixtureEntry>
      sources;  ///< one, or those of a mixture; none for validation alone
  std::int64_t seq_len = 0;
  std::filesystem::path tokenizer;      ///< folder with tokenizer.json
  std::filesystem::path tokens_folder;  ///< of token files made from text
  double held_out = 0;                  ///< share of the sources that is not trained on
  bool documents_masked = false;
  bool knows_document_end = false;  ///< by a token
  std::uint64_t seed = 0;
  ReadAheadPlan read_ahead;
  std::optional<ValidationPlan> validation;
};

}  // namespace tessera::plan
