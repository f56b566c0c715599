// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/step_traffic.hpp"

#include <algorithm>

#include "cell_traffic.hpp"
#include "tessera/plan/unknowns.hpp"
#include "traffic_rows.hpp"
#include "weight_traffic.hpp"

namespace tessera::plan {
namespace {

using comm::Call;
using mesh::Axis;
using schedule::ActionKind;

std::string reason_against(const JobPlan& plan) {
  if (std::string measured = measured_first(plan); !measured.empty()) return measured;
  if (loss_chunk_tokens(plan) > 0)
    return "training.fused_linear_cross_entropy communicates for each chunk of tokens";
  const int tp = plan.layout.degree(Axis::tp);
  if (plan.linears.rounds() && !plan.linears.has_local_scales() && tp > 1)
    return "tensor-parallel ranks agree on the scales of float8";
  if (plan.linears.experts.recipe == LinearRecipe::rowwise && plan.layout.experts_cut_by_tp())
    return "ranks that share an expert agree on its scales";
  if (plan.linears.rounds() && tp > plan.model.spec->dimensions.kv_heads)
    return "gradients of copies of key-value heads are added up before they are rounded";
  return uneven_experts(plan);
}

/// One step of one rank.
class Step {
 public:
  Step(const JobPlan& plan, mesh::Rank rank)
      : plan_(plan),
        model_(*plan.model.spec),
        pipeline_(plan.microbatches.pipeline),
        rank_(rank),
        pipeline_rank_(plan.layout.coord_of(rank)[Axis::pp]),
        groups_(plan.layout),
        cells_(plan, rank) {}

  std::vector<TrafficRow> rows() {
    for (const schedule::StageIndex stage : pipeline_.map.stages_of(pipeline_rank_)) add(stage);
    sum_copies();
    add_control();
    return rows_.rows();
  }

 private:
  struct Passes {
    std::int64_t forward = 0, backward = 0;
  };

  void add(schedule::StageIndex stage) {
    const Range cells = (*pipeline_.ranges)[stage];
    WeightTraffic weights(plan_, rank_, cells, tied(), rows_);
    weights.agree_on_scales();
    const Passes passes = run(stage, weights);
    weights.reduce_gradients(pipeline_.map.stages() > 1);
    weights.add_copies(copies_);
    for (const UnitPart& part : unit_parts(model_, cells)) add(part, passes);
    balance_experts(cells);
  }

  /// All rounds: gathered weights stay from one to the next, if policies keep them.
  Passes run(schedule::StageIndex stage, WeightTraffic& weights) {
    Passes passes;
    for (int round = 0; round < plan_.batch().rounds; ++round)
      for (const schedule::Action& action : pipeline_.lists[pipeline_rank_]) {
        if (action.stage != stage) continue;
        if (action.kind == ActionKind::forward) {
          weights.forward();
          ++passes.forward;
        } else if (action.kind == ActionKind::backward ||
                   action.kind == ActionKind::input_gradient) {
          weights.backward();
          ++passes.backward;
        } else if (!computes(action.kind)) {
          transfer(action);
        }
      }
    return passes;
  }

  /// Sends and receives are calls alike, and what is sent counts.
  void transfer(const schedule::Action& action) {
    const Range cells = (*pipeline_.ranges)[action.stage];
    const bool sends_forward = action.kind == ActionKind::send_forward,
               down = sends_forward || action.kind == ActionKind::recv_forward,
               sends = sends_forward || action.kind == ActionKind::send_backward;
    const RankGroup pp = groups_.along({Axis::pp});
    rows_.add(down ? pp : RankGroup{mesh::kUpstream, pp.size}, Call::group,
              sends ? bytes_across(sends_forward ? cells.end() : cells.begin) : 0);
  }

  std::int64_t bytes_across(std::int64_t cut) const {
    const BatchPlan& batch = plan_.batch();
    std::int64_t bytes = 0;
    for (const Crossing& crossing :
         crossings(model_.cells[static_cast<std::size_t>(cut)],
                   {plan_.layout.degree(Axis::tp), plan_.tensor.sequence_parallel,
                    batch.microbatch_rows, batch.cut.positions(), plan_.precision.compute}))
      bytes += element_count(crossing.shape) * static_cast<std::int64_t>(size_of(crossing.type));
    return bytes;
  }

  void add(const UnitPart& part, const Passes& passes) {
    const UnitTraffic unit = cells_.of_unit(part);
    const bool whole = part.block && plan_.recompute.remakes_block(part.number - 1),
               finely = part.block && plan_.recompute.kind == RecomputePolicy::Kind::operations;
    rows_.add(unit.forward, passes.forward + (whole ? passes.backward : 0));
    rows_.add(unit.loss, passes.forward);
    rows_.add(unit.again, finely ? passes.backward : 0);
    rows_.add(unit.backward, passes.backward);
  }

  /// As parallel::GradientReducer pairs the two ends.
  TiedStages tied() const {
    const schedule::PipelineRank first = pipeline_.map.rank_of(pipeline_.map.first()),
                                 last = pipeline_.map.rank_of(pipeline_.map.last());
    if (first == last) return {};
    const bool whole = pipeline_.map.ranks() == 2 && first < last;
    return {2, whole ? groups_.along({Axis::pp}) : RankGroup{mesh::kEmbedding, 2}};
  }

  void sum_copies() {
    for (const auto& [copies, bytes] : copies_)
      rows_.add(groups_.neighbours(groups_.along({Axis::tp}), copies), Call::all_reduce, bytes);
  }

  /// Rows that each expert of the stage got, in one sum.
  void balance_experts(Range cells) {
    const RankGroup readers =
        plan_.layout.experts_cut_by_tp()
            ? groups_.along({Axis::dp_replicate, Axis::dp_shard, Axis::cp})
            : groups_.along({Axis::dp_replicate, Axis::dp_shard, Axis::cp, Axis::tp});
    if (const std::int64_t experts = model_.experts_of(cells); experts > 0)
      rows_.add(readers, Call::all_reduce, 8 * experts);
  }

  /// Valid tokens, whether experts' rows fit, the loss of each source of data, the norm and the
  /// experts' loads.
  void add_control() {
    const RankGroup world{mesh::kWorld, plan_.layout.world()};
    const auto sources =
                   static_cast<std::int64_t>(std::max<std::size_t>(1, plan_.data.sources.size())),
               mixtures = static_cast<std::int64_t>(model_.mixtures.size());
    rows_.add(world, Call::all_reduce, 8);
    if (plan_.fixes_rows()) rows_.add(world, Call::all_reduce, 8);
    rows_.add(world, Call::all_reduce, 8 * (kVotes + sources * (1 + kSumWords)));
    if (plan_.arithmetic.deterministic)
      rows_.add(world, Call::all_reduce, 8 * kSumWords);
    else
      rows_.add(world, Call::all_gather, 8);
    if (mixtures > 0) rows_.add(world, Call::all_reduce, 8 * (1 + 2 * mixtures));
  }

  const JobPlan& plan_;
  const model::ModelSpec& model_;
  const PipelinePlan& pipeline_;
  mesh::Rank rank_;
  schedule::PipelineRank pipeline_rank_;
  RankGroups groups_;
  CellTraffic cells_;
  std::map<int, std::int64_t> copies_;  ///< bytes, by the number of copies
  TrafficRows rows_;
};

}  // namespace

StepTraffic step_traffic(const JobPlan& plan, mesh::Rank rank) {
  StepTraffic traffic;
  traffic.unknown = reason_against(plan);
  if (traffic.unknown.empty()) traffic.rows = Step(plan, rank).rows();
  return traffic;
}

}  // namespace tessera::plan
