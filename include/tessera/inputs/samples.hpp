// SPDX-License-Identifier: Apache-2.0
// The data of a run: what it trains on and what it validates on.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/comm/communicator.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/plan/data_plan.hpp"

namespace tessera::inputs {

struct Samples {
  std::unique_ptr<data::SampleSource> source;  ///< of training
  /// ends, in a fixed order; null unless validation.enable
  std::unique_ptr<data::SampleSource> validation;
  std::int64_t vocab = 0;  ///< ids are below it; 0 if only the data itself tells (replay)
};

/// Collective over `control`: rank 0 makes token files of plain text or JSONL first, once.
/// `global_batch`: sequences of a step, the rows of a replay file that count. Throws Error(data)
/// for files that are damaged, too short or of different tokenizers, and Error(usage) for documents
/// that are to be masked and not known.
Samples open_samples(const plan::DataPlan& plan, std::int64_t global_batch,
                     comm::Communicator& control);

/// The same for the data of plan.validation alone, where they have a path of their own: `source` is
/// null.
Samples open_validation_samples(const plan::DataPlan& plan, comm::Communicator& control);

/// What a run has trained on.
struct Trained {
  std::int64_t steps = 0, samples = 0;
};
/// Throws Error(data) where the source ends before `steps` steps: a run that could not end would
/// lose what it has computed since its last checkpoint.
void require_samples(const data::SampleSource& source, std::int64_t steps,
                     std::int64_t global_batch, const Trained& before = {});

}  // namespace tessera::inputs
