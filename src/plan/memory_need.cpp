// SPDX-License-Identifier: Apache-2.0

#include "tessera/plan/memory_need.hpp"

#include <algorithm>
#include <set>

#include "tessera/base/error.hpp"
#include "tessera/base/out_of_memory.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/plan/placement.hpp"
#include "tessera/plan/stage_units.hpp"

namespace tessera::plan {
namespace {

using mesh::Axis;
using metrics::human_bytes;

std::int64_t bytes_of(DType type) { return static_cast<std::int64_t>(size_of(type)); }

/// Of parameters: elements on all ranks that shard them, bytes of these as gathered, of those that
/// are gathered in 8 bits alone, and this rank's elements.
struct Sizes {
  std::int64_t elements = 0, gathered_bytes = 0, in_bytes = 0, own = 0;
};

Sizes sizes_of(const model::ModelSpec& model, const std::set<int>& params,
               const mesh::Layout& layout, const MemoryNeedOptions& options) {
  Sizes sizes;
  for (const int param : params) {
    const model::ParamSpec& spec = model.params[static_cast<std::size_t>(param)];
    const Placement at = place(spec, layout, mesh::Rank(0));
    const std::int64_t piece = element_count(at.local_shape);
    sizes.elements += piece;
    sizes.gathered_bytes +=
        piece * options.linears.gathered_element_bytes(spec, options.precision.compute);
    if (options.linears.gathers_bytes_of(spec)) sizes.in_bytes += piece;
    sizes.own += piece / at.shards;  // of a short last chunk too: a lower bound
  }
  return sizes;
}

}  // namespace

MemoryNeed memory_need(const model::ModelSpec& model, const mesh::Layout& layout,
                       const std::vector<Range>& cells, const MemoryNeedOptions& options) {
  MemoryNeed need;
  const PrecisionPlan& types = options.precision;
  const std::int64_t compute = bytes_of(types.compute);
  const std::int64_t tokens = options.microbatch_tokens, tp = layout.degree(Axis::tp);
  std::int64_t largest = 0, largest_in_bytes = 0, inputs = 0;
  std::set<int> all;
  for (const Range& range : cells) {
    all.merge(params_of(model, range.begin, range.end()));
    for (const model::UnitSpec& unit : model.units) {
      const std::int64_t begin = std::max<std::int64_t>(unit.begin, range.begin);
      const std::int64_t end = std::min<std::int64_t>(unit.end, range.end());
      if (begin >= end) continue;
      const Sizes unit_sizes = sizes_of(model, params_of(model, begin, end), layout, options);
      largest = std::max(largest, unit_sizes.gathered_bytes);
      largest_in_bytes = std::max(largest_in_bytes, unit_sizes.in_bytes);
      ++inputs;
    }
    const bool has_logits = range.end() == static_cast<std::int64_t>(model.cells.size());
    if (has_logits)
      need.activations += (options.loss_chunk_tokens > 0 ? options.loss_chunk_tokens : tokens) *
                          (model.dimensions.vocab / tp) * compute;
  }
  const Sizes sizes = sizes_of(model, all, layout, options);
  need.weights = sizes.own * bytes_of(types.master);
  if (options.trains) {
    need.gradients = sizes.own * bytes_of(types.gradient());
    need.optimizer = 2 * sizes.own * bytes_of(options.moments);
  }
  // Layers read what is stored, but for weights in 8 bits.
  const bool aliased =
      types.compute == types.master && !options.offload && sizes.own == sizes.elements;
  need.gathered = aliased ? largest_in_bytes : largest;
  need.activations +=
      inputs * tokens / (options.sequence_parallel ? tp : 1) * model.dimensions.dim * compute;
  return need;
}

namespace {

MemoryNeed need_of(const JobPlan& plan, const StageRanges& ranges, schedule::PipelineRank rank,
                   bool trains) {
  std::vector<Range> mine;
  for (const schedule::StageIndex stage : plan.microbatches.pipeline.map.stages_of(rank))
    mine.push_back(ranges[stage]);
  const BatchPlan& batch = plan.batch();
  return memory_need(
      *plan.model.spec, plan.layout, mine,
      {plan.precision, plan.optimizer.moments, trains && plan.sharding.freeze.empty(),
       plan.sharding.offload, plan.tensor.sequence_parallel,
       batch.microbatch_rows * batch.cut.positions(), loss_chunk_tokens(plan), plan.linears});
}

/// The stages of the cut `layers`; nothing where the model has too few layers for it.
std::optional<StageRanges> cut_by_layers(const JobPlan& plan) try {
  return split_by_layers(*plan.model.spec, plan.microbatches.pipeline.map.stages(), 1, 1);
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

std::optional<MemoryNeed> memory_need(const JobPlan& plan, schedule::PipelineRank rank,
                                      bool trains) {
  const PipelinePlan& pipeline = plan.microbatches.pipeline;
  if (pipeline.ranges) return need_of(plan, *pipeline.ranges, rank, trains);
  const std::optional<StageRanges> layers = cut_by_layers(plan);
  if (!layers) return std::nullopt;
  std::optional<MemoryNeed> least;
  for (const schedule::PipelineRank each : pipeline.map.each_rank()) {
    const MemoryNeed need = need_of(plan, *layers, each, trains);
    if (!least || need.total() < least->total()) least = need;
  }
  return least;
}

void check_need(const std::string& model, const MemoryNeed& need, std::int64_t needed,
                std::int64_t free, const std::string& where, Remedy remedy) {
  if (free <= 0 || needed <= free) return;
  std::string parts;
  for (const auto& [name, bytes] : {std::pair{"weights", need.weights},
                                    {"gradients", need.gradients},
                                    {"optimizer", need.optimizer},
                                    {"gathered weights", need.gathered},
                                    {"activations", need.activations}})
    if (bytes > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, human_bytes(bytes));
  const std::string what =
      remedy == Remedy::more_ranks
          ? fmt::format(
                "use {} times as many ranks or more (data_parallel_shard_degree, "
                "tensor_parallel_degree, pipeline_parallel_degree), a smaller model, or "
                "smaller batches",
                (needed + free - 1) / free)
          : "use a node with more free memory, or a smaller model";
  const std::string advice = memory_advice("");
  fail(ExitCode::environment, "{} needs at least {} {}, where {} are free ({}); {}{}{}", model,
       human_bytes(needed), where, human_bytes(free), parts, what, advice.empty() ? "" : "; ",
       advice);
}

}  // namespace tessera::plan
