// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/workload.hpp"

#include "from_plan.hpp"
#include "tessera/base/error.hpp"
#include "tessera/plan/expert_rows.hpp"
#include "tessera/plan/graph_obstacle.hpp"

namespace tessera::planner {
namespace {

using mesh::Axis;

/// The blocks of a model by layer: their FLOPs, and which are mixtures.
struct Blocks {
  std::vector<double> flops;
  std::vector<bool> mixture;

  Blocks(const model::ModelSpec& model, std::int64_t seq)
      : flops(static_cast<std::size_t>(model.dimensions.layers), 0), mixture(flops.size(), false) {
    for (const model::CellSpec& cell : model.cells) {
      if (cell.layer < 0) continue;
      flops[static_cast<std::size_t>(cell.layer)] += forward_flops(model, cell, seq);
      if (cell.mixture >= 0) mixture[static_cast<std::size_t>(cell.layer)] = true;
    }
  }
};

/// The part of a block that a stage has, by FLOPs.
StageContent content_of(const model::ModelSpec& model, const Blocks& blocks, const Range& cells,
                        std::int64_t seq) {
  StageContent content;
  for (std::int64_t i = cells.begin; i < cells.end(); ++i) {
    const model::CellSpec& cell = model.cells[static_cast<std::size_t>(i)];
    content.embedding |= cell.kind == model::CellKind::embedding;
    content.head |= cell.kind == model::CellKind::output;
    if (cell.layer < 0) continue;
    const auto layer = static_cast<std::size_t>(cell.layer);
    (blocks.mixture[layer] ? content.mixtures : content.dense) +=
        forward_flops(model, cell, seq) / blocks.flops[layer];
  }
  return content;
}

Pipeline pipeline_of(const plan::JobPlan& plan) {
  const plan::PipelinePlan& from = plan.microbatches.pipeline;
  require(from.ranges.has_value(), ExitCode::usage,
          "the split \"measured\" times cells when a run starts, so that the stages are not known "
          "before (parallelism.pipeline_parallel_split); set \"balanced\" or \"layers\"");
  Pipeline out;
  out.map = from.map;
  out.kind.reset();
  out.lists = std::make_shared<const schedule::ActionLists>(from.lists);
  out.pairs = from.pairs;
  out.microbatches = plan.batch().microbatches;
  out.rounds = plan.batch().rounds;
  out.stages = stages_of(*plan.model.spec, *from.ranges, plan.batch().cut.seq());
  return out;
}

void set_recompute(const plan::RecomputePolicy& policy, std::int64_t blocks, Workload& work) {
  using Kind = plan::RecomputePolicy::Kind;
  if (policy.kind == Kind::operations) {
    work.recompute = Recompute::every_second_mm;
  } else if (policy.kind == Kind::every) {
    work.recompute = Recompute::full;
    work.recomputed_blocks = policy.share_of(blocks);
  } else if (policy.kind == Kind::budget) {
    work.recompute = Recompute::full;
    work.recomputed_blocks = 1 - policy.budget;
  }
}

void set_sharding(const plan::JobPlan& plan, Workload& work) {
  const mesh::Layout& layout = plan.layout;
  const bool pipelined = layout.degree(Axis::pp) > 1;
  work.tp = layout.degree(Axis::tp);
  work.cp = layout.degree(Axis::cp);
  work.ep = layout.expert_degree();
  work.etp = layout.experts_cut_by_tp() ? work.tp : 1;
  work.fsdp = layout.degree(Axis::dp_shard) * work.cp;
  work.replicate = layout.degree(Axis::dp_replicate);
  work.reshard = plan.sharding.reshard.frees(pipelined);
  work.prefetch_units = plan.sharding.prefetch_units;
  work.unsharded_gradients = !plan.sharding.reduces_each_microbatch(pipelined);
}

/// Of the parameters whose names begin with `prefix`, without experts'; of none, as any other.
double mean_gather_bytes(const plan::JobPlan& plan, std::string_view prefix) {
  double elements = 0, bytes = 0;
  for (const model::ParamSpec& param : plan.model.spec->params) {
    if (!param.fqn.starts_with(prefix) || model::counts_experts(param.placement)) continue;
    const auto count = static_cast<double>(element_count(param.global_shape));
    elements += count;
    bytes += count * static_cast<double>(
                         plan.linears.gathered_element_bytes(param, plan.precision.compute));
  }
  return elements > 0 ? bytes / elements : static_cast<double>(size_of(plan.precision.compute));
}

}  // namespace

IndexedVector<schedule::StageIndex, StageContent> stages_of(const model::ModelSpec& model,
                                                            const plan::StageRanges& ranges,
                                                            std::int64_t seq) {
  const Blocks blocks(model, seq);
  IndexedVector<schedule::StageIndex, StageContent> out;
  for (const Range& cells : ranges) out.push_back(content_of(model, blocks, cells, seq));
  return out;
}

Format format_of(Precision precision) {
  if (precision == Precision::f32) return Format::f32;
  if (precision == Precision::bf16) return Format::bf16;
  return precision == Precision::nvfp4 ? Format::fp4 : Format::fp8;
}

void require_products(Precision precision, const Machine& machine) {
  const Format format = format_of(precision);
  require(machine.ceiling_of(format) > 0, ExitCode::usage,
          "{} has no {} products; take another precision (training.mixed_precision_param, "
          "model.converters) or machine",
          machine.name, name_of(format));
}

double Workload::expert_rows() const {
  if (expert_capacity == 0 || ep == 1) return 1;
  const ExpertShape& shape = *model.mixture;
  const auto tokens = static_cast<std::int64_t>(local_tokens() * etp / tp);
  const std::int64_t rows =
      plan::rows_for_each_rank(expert_capacity, {tokens, shape.top_k, shape.experts, ep});
  return static_cast<double>(rows * ep) / static_cast<double>(tokens * shape.top_k);
}

double element_bytes(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

Graphs graphs_of(const Workload& work) {
  if (!work.wants_graphs) return Graphs::none;
  if (!work.model.mixture) return Graphs::full;
  const plan::ExpertProducts products{work.precision == Precision::f32 ? DType::f32 : DType::bf16,
                                      work.model.dim, work.model.mixture->hidden / work.etp,
                                      work.ep > 1 && work.expert_capacity == 0};
  return plan::experts_obstacle(products).empty() ? Graphs::full : Graphs::none;
}

Workload workload_of(const plan::JobPlan& plan, const Stack& stack) {
  Workload work;
  work.model = architecture_of(plan.model.shape);
  work.gpus = plan.layout.world();
  work.seq = plan.batch().cut.seq();
  work.microbatch = plan.batch().microbatch_rows;
  work.pipeline = pipeline_of(plan);
  set_sharding(plan, work);
  set_recompute(plan.recompute, plan.model.shape.layers, work);
  work.expert_capacity = plan.expert_rows.capacity;
  if (plan.expert_rows.once) work.dispatcher = Dispatcher::once_a_rank;
  work.offload = plan.recompute.offload && stack.offload;
  const bool graphs = stack.graphs && plan.device.graphs;
  work.wants_graphs = graphs && plan::obstacle_beside_experts(plan).empty();
  if (graphs && plan::graph_obstacle(plan).empty()) work.graphs = Graphs::full;
  work.precision = plan.precision.compute == DType::bf16 ? Precision::bf16 : Precision::f32;
  if (plan.linears.rounds()) work.precision = Precision::fp8_torchao;
  if (plan.linears.gathers_bytes)
    work.in_bytes = {mean_gather_bytes(plan, "layers."),
                     mean_gather_bytes(plan, plan::kOutputLayer)};
  work.master_bytes = static_cast<double>(size_of(plan.precision.master));
  work.gradient_bytes = static_cast<double>(size_of(plan.precision.gradient()));
  work.moment_bytes = static_cast<double>(size_of(plan.optimizer.moments));
  work.distributed_optimizer = stack.distributed_optimizer;
  // Deterministic jobs cut products without overlapping them.
  work.async_tp = plan.tensor.token_chunks > 0 && plan.tensor.overlap_chunks;
  work.gathers_keys = plan.rotation == plan::Rotation::all_gather;
  work.ranges_in_order = !plan.batch().cut.balanced();
  work.sequence_parallel = plan.tensor.sequence_parallel;
  work.loss_parallel = plan.tensor.loss_parallel;
  if (stack.fused_loss) work.loss_chunk_tokens = plan::loss_chunk_tokens(plan);
  return work;
}

}  // namespace tessera::planner
