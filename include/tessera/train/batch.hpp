// The samples of one step on one rank.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "tessera/data/sample_source.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {

/// A step's microbatches of one rank, and how many labels of their whole sequences count.
struct Batch {
  std::vector<parallel::Microbatch> microbatches;
  std::int64_t valid_tokens = 0;
};

/// Who reads: ranks that differ in cp only read the same samples, each its own positions.
struct Reader {
  int dp_rank = 0, cp_rank = 0;
};

/// Reads the step whose first sample, of all ranks, is number `first`. Throws Error(data) for a token outside
/// [0, vocab).
Batch read_batch(const data::SampleSource& source, const BatchPlan& plan, std::int64_t first, const Reader& reader,
                 std::int64_t vocab, torch::Device device);

}  // namespace tessera::train
