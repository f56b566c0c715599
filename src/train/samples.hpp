// The data of a run, chosen by training.dataset.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/comm/communicator.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {

struct Samples {
  std::unique_ptr<data::SampleSource> source;
  std::int64_t vocab = 0;  ///< ids are below it; 0 if only the data itself tells (replay)
};

/// Collective over `control`: rank 0 makes a token file of plain text or JSONL first, once. Throws Error(data), or Error(usage) for a
/// missing path.
Samples open_job_samples(const config::JobConfig& job, const BatchPlan& plan, comm::Communicator& control);

}  // namespace tessera::train
