// SPDX-License-Identifier: Apache-2.0
// How a global batch is cut: over data-parallel ranks, accumulation rounds and microbatches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/config/job_config.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/plan/sequence_cut.hpp"

namespace tessera::plan {

/// Data-parallel rank d reads rows [d * rows, (d + 1) * rows) of each step, in order: the first
/// rows in the first microbatch.
struct BatchPlan {
  std::int64_t global_batch = 0;     ///< sequences of a step, whole job
  std::int64_t rows = 0;             ///< of them, of one data-parallel rank
  std::int64_t microbatch_rows = 0;  ///< sequences that pass through the model together
  int rounds = 1;                    ///< passes over the schedule in a step
  int microbatches = 1;              ///< of one round
  SequenceCut cut;                   ///< of every sequence over context-parallel ranks
  bool documents = false;            ///< are masked against each other
  bool pinned = false;               ///< batches go to a GPU through pinned memory
  /// the token that ends one; without it the source knows them
  std::optional<std::int64_t> document_end_id;

  int microbatches_a_step() const { return rounds * microbatches; }

  /// Throws Error(usage) for a step whose sequences or tokens nobody could count: `local` sequences
  /// of each of `ranks` data-parallel ranks, or `global` ones where that is above 0.
  static void require_countable(std::int64_t global, std::int64_t local, std::int64_t ranks,
                                std::int64_t seq_len);

  /// `microbatch_rows`: of a pipeline, in the place of the job's; the job's "auto" is 1 until
  /// somebody knows better. Contract: batch sizes and sequence divide (the job was checked).
  static BatchPlan make(const config::JobConfig& job, const mesh::Layout& layout,
                        std::int64_t microbatch_rows = 0);
  /// Of validation: validation.local_batch_size sequences of each data-parallel rank, as long as
  /// training's; a pipeline cuts them into the largest microbatches that divide both them and
  /// training's.
  static BatchPlan of_validation(const config::JobConfig& job, const mesh::Layout& layout);
};

}  // namespace tessera::plan
