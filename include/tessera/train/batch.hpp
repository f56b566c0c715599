// SPDX-License-Identifier: Apache-2.0
// The samples of one step on one rank.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <deque>
#include <future>
#include <vector>

#include "tessera/data/sample_source.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/plan/data_plan.hpp"

namespace tessera::train {

/// Who reads: ranks that differ in cp only read the same samples, each its own positions. The first
/// pipeline stage needs inputs, the last one labels; the others read nothing but where documents
/// begin, if these are masked.
struct Reader {
  int dp_rank = 0, cp_rank = 0;
  bool inputs = true, labels = true;
};

/// A step's rows of one rank in host memory, [rows, positions] each; empty where they are not
/// needed.
struct Rows {
  std::vector<std::int32_t> inputs, labels;
  parallel::Documents documents;  ///< of whole sequences, by row
};

/// Reads the step whose first sample, of all ranks, is number `first`. Throws Error(data) for a
/// token outside [0, vocab).
Rows read_rows(const data::SampleSource& source, const plan::BatchPlan& plan, std::int64_t first,
               const Reader& reader, std::int64_t vocab);

/// A step's microbatches of one rank, and how many of its labels count.
struct Batch {
  at::Tensor ids;  ///< tokens and labels, of which the microbatches' are parts
  std::vector<parallel::Microbatch> microbatches;
  std::int64_t valid_tokens = 0;
};

/// Rows cut into the plan's microbatches; `ids` has their inputs, and then their labels.
Batch batch_of(const Rows& rows, const at::Tensor& ids, const plan::BatchPlan& plan);

/// Reads steps ahead on threads of its own, while others compute: page faults and slow file systems
/// are theirs to wait for. What comes out are read_rows()'s bits.
class ReadAhead {
 public:
  /// The source must outlive this.
  ReadAhead(const data::SampleSource& source, const Reader& reader, std::int64_t vocab,
            plan::ReadAheadPlan ahead)
      : source_(source), reader_(reader), vocab_(vocab), ahead_(ahead) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The rows of the step that begins with sample `first`. Begins to read those that follow, one
  /// global batch after the other, but none from sample `end` on. Throws what reading them threw;
  /// what was read ahead of another step than the one that is asked for is forgotten, with its
  /// errors.
  Rows take(const plan::BatchPlan& plan, std::int64_t first, std::int64_t end);

 private:
  struct Pending {
    std::int64_t first;
    std::future<Rows> rows;
  };
  const data::SampleSource& source_;
  Reader reader_;
  std::int64_t vocab_;
  plan::ReadAheadPlan ahead_;
  std::deque<Pending> pending_;  ///< in the order of steps
};

}  // namespace tessera::train
