// The samples of one step on one rank.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "tessera/data/sample_source.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {

/// A step's microbatches of one data-parallel rank, and how many of their labels count.
struct Batch {
  std::vector<parallel::Microbatch> microbatches;
  std::int64_t valid_tokens = 0;
};

/// Reads step `step` (from 0) for data-parallel rank `dp_rank`. Throws Error(data) for a token outside [0, vocab).
Batch read_batch(const data::SampleSource& source, const BatchPlan& plan, std::int64_t step, int dp_rank, std::int64_t vocab,
                 torch::Device device);

}  // namespace tessera::train
