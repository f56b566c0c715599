// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/batch_plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/plan/model_shape.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::plan {

/// Compares quotients, because products of large numbers may not fit.
void BatchPlan::require_countable(std::int64_t global, std::int64_t local, std::int64_t ranks,
                                  std::int64_t seq_len) {
  constexpr std::int64_t kMostSequences = std::numeric_limits<int>::max(),
                         kMostTokens = std::int64_t{1} << 53;
  require(global > 0 ? global <= kMostSequences : local <= kMostSequences / ranks, ExitCode::usage,
          "a step of {} sequences{} is too large; a step has at most {} sequences",
          global > 0 ? global : local,
          global > 0
              ? ""
              : fmt::format(" a rank on {} data-parallel rank{}", ranks, ranks == 1 ? "" : "s"),
          kMostSequences);
  const std::int64_t sequences = global > 0 ? global : local * ranks;
  require(seq_len <= kMostTokens / sequences, ExitCode::usage,
          "a step of {} sequences of {} tokens is too large; a step has at most {} tokens",
          sequences, seq_len, kMostTokens);
}

BatchPlan BatchPlan::make(const config::JobConfig& job, const mesh::Layout& layout,
                          std::int64_t microbatch_rows) {
  const std::int64_t local = job.training.local_batch_size, dp = layout.dp_degree();
  BatchPlan plan;
  plan.global_batch =
      job.training.global_batch_size > 0 ? job.training.global_batch_size : local * dp;
  TESSERA_EXPECT(plan.global_batch % (local * dp) == 0, "global_batch_size {} of {} x {}",
                 plan.global_batch, local, dp);
  plan.rows = plan.global_batch / dp;
  const std::int64_t accumulation = plan.rows / local;
  const bool pipelined = layout.degree(mesh::Axis::pp) > 1;
  if (microbatch_rows == 0)
    microbatch_rows = std::max<std::int64_t>(1, job.parallelism.pipeline_parallel_microbatch_size);
  plan.microbatch_rows = pipelined ? microbatch_rows : local;
  TESSERA_EXPECT(local % plan.microbatch_rows == 0, "microbatches of {} in {}",
                 plan.microbatch_rows, local);
  const std::int64_t per_round = local / plan.microbatch_rows;
  // Rounds limit the memory of schedules that keep all microbatches, and a file says how many it is
  // for. The other schedules stream through all of them.
  const schedule::Traits* schedule =
      schedule::find_traits(job.parallelism.pipeline_parallel_schedule);
  const bool separate = !schedule || schedule->keeps_all;
  plan.rounds = static_cast<int>(separate ? accumulation : 1);
  plan.microbatches = static_cast<int>(separate ? per_round : per_round * accumulation);
  plan.cut = SequenceCut::make(job.training.seq_len, layout.degree(mesh::Axis::cp),
                               job.parallelism.context_parallel_load_balancer.has_value());
  plan.documents = job.training.document_mask;
  plan.pinned = job.training.dataloader.pin_memory;
  plan.document_end_id = job.training.document_end_id;
  return plan;
}

BatchPlan BatchPlan::of_validation(const config::JobConfig& job, const mesh::Layout& layout) {
  const config::Validation& validation = job.validation;
  config::JobConfig same = job;
  same.training.local_batch_size = validation.local_batch_size;
  same.training.global_batch_size = -1;
  same.training.dataloader = validation.dataloader;
  if (validation.dataset_path) same.training.dataset = validation.dataset;
  const std::int64_t trained =
      std::max<std::int64_t>(1, job.parallelism.pipeline_parallel_microbatch_size);
  return make(same, layout, std::gcd(validation.local_batch_size, trained));
}

}  // namespace tessera::plan
