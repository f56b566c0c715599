// SPDX-License-Identifier: Apache-2.0
#include "passes.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "tessera/base/log.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/plan/graph_obstacle.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {
namespace {

using mesh::Axis;

/// The same microbatches in memory of their own.
Batch copy_of(const Batch& batch) {
  Batch copy = batch;
  copy.ids = batch.ids.clone();
  const auto within = [&](const at::Tensor& part) {
    return part.defined() ? copy.ids.narrow(0, part.storage_offset(), part.numel()) : part;
  };
  for (parallel::Microbatch& each : copy.microbatches)
    each = {within(each.tokens), within(each.labels), std::move(each.documents)};
  return copy;
}

}  // namespace

std::string obstacle_to_graphs(const plan::JobPlan& plan, mesh::DeviceMesh& mesh,
                               at::Device device) {
  using enum Axis;
  if (!device.is_cuda()) return "CUDA graphs need a GPU";
  const std::string_view backend = mesh.along({pp, dp_replicate, dp_shard, cp, tp}).backend();
  if (backend != "nccl" && backend != "self")
    return "communication goes through the host (comm.backend)";
  if (plan.model.shape.mixture && !multiplies_groups(device))
    return "this GPU multiplies expert by expert";
  return plan::graph_obstacle(plan);
}

Passes::Passes(const plan::JobPlan& plan, mesh::DeviceMesh& mesh, parallel::Stages& stages,
               metrics::PhaseTimer& timer, at::Device device)
    : mesh_(mesh),
      stages_(stages),
      groups_(stages.groups()),
      timer_(timer),
      device_(device),
      executor_(stages, mesh, &timer),
      wanted_(plan.device.graphs) {
  if (plan.fixes_rows()) fixed_rows_.emplace(stages, mesh);
  if (!wanted_) return;
  const std::string obstacle = obstacle_to_graphs(plan, mesh, device);
  if (obstacle.empty()) return;
  tell(obstacle);
  wanted_ = false;
}

void Passes::tell(const std::string& reason) {
  if (std::exchange(told_, true) || mesh_.rank().value() != 0) return;
  log::info("compile.enable: steps are no CUDA graphs, as {}", reason);
}

void Passes::forget_graph() {
  captured_.reset();
  scale_.reset();
}

std::vector<at::Tensor> Passes::run(const Batch& batch, const plan::MicrobatchPlan& microbatches,
                                    double scale) {
  if (!fixed_rows_) return launch_or_issue(batch, microbatches, scale);
  if (attempts_.fixed_now()) {
    fixed_rows_->send(true);
    std::vector<at::Tensor> losses = launch_or_issue(batch, microbatches, scale);
    fixed_rows_->send(false);
    if (rows_fit()) return losses;
    captured_.reset();  // its activations and those of this step would be there at once
    fixed_rows_->forget_step();
  }
  return issue(batch, microbatches, scale);
}

/// On all ranks, as each sums its gradients with others.
bool Passes::rows_fit() {
  std::int64_t here = 0;
  {
    const auto phase = timer_.time(metrics::Phase::device);
    here = fixed_rows_->overflows();
  }
  const auto phase = timer_.time(metrics::Phase::communication);
  if (comm::all_reduce_scalar(mesh_.control(), here, comm::Op::max) == 0) {
    attempts_.fitted();
    return true;
  }
  const int steps = attempts_.did_not_fit();
  if (mesh_.rank().value() == 0)
    log::info(
        "more tokens chose the experts of a rank than fit "
        "(parallelism.expert_parallel_capacity_factor): this step is computed again, and {} more "
        "send as many as were chosen",
        steps);
  return false;
}

std::vector<at::Tensor> Passes::launch_or_issue(const Batch& batch,
                                                const plan::MicrobatchPlan& microbatches,
                                                double scale) {
  if (!wanted_ || !may_launch(scale)) return issue(batch, microbatches, scale);
  refresh_copies();
  if (captured_) {
    captured_->batch.ids.copy_(batch.ids, /*non_blocking=*/true);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      groups_[i]->gather_count() += captured_->gathers[i];
  } else if (!capture(batch, microbatches, scale)) {
    return issue(batch, microbatches, scale);
  }
  captured_->graph->launch();
  return captured_->token_losses;
}

/// A step is issued call by call before one is captured: what is made once is there then. The scale
/// of the loss is a part of the graph.
bool Passes::may_launch(double scale) {
  if (scale_ == scale) return true;
  if (scale_) tell("the number of tokens that count differs from step to step");
  captured_.reset();  // its activations and those of this step would be there at once
  scale_ = scale;
  return false;
}

/// Graphs read kept copies of weights where they were at the capture, and do not cast them.
void Passes::refresh_copies() {
  int freed = 0;
  for (parallel::ShardGroup* group : groups_) {
    group->kept_copy().refresh();
    freed += group->kept_copy().times_freed();
  }
  if (std::exchange(copies_freed_, freed) != freed) captured_.reset();
}

/// So far, by group.
std::vector<parallel::GatherCount> Passes::gathers() const {
  std::vector<parallel::GatherCount> all;
  for (parallel::ShardGroup* group : groups_) all.push_back(group->gather_count());
  return all;
}

bool Passes::capture(const Batch& batch, const plan::MicrobatchPlan& microbatches, double scale) {
  Captured captured{make_step_graph(device_), copy_of(batch), {}, {}};
  const std::vector<parallel::GatherCount> before = gathers();
  if (give_up_if_refused(captured.graph->capture(
          [&] { captured.token_losses = issue(captured.batch, microbatches, scale); }))) {
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i]->gather_count() = before[i];
    return false;
  }
  captured.gathers = gathers();
  for (std::size_t i = 0; i < groups_.size(); ++i)
    captured.gathers[i] = captured.gathers[i] - before[i];
  captured_ = std::move(captured);
  if (mesh_.rank().value() == 0)
    log::info("compile.enable: forward and backward of a step are a CUDA graph from now on");
  return true;
}

/// `why`: of this rank; empty: it has a graph. A rank without one makes all do without.
bool Passes::give_up_if_refused(const std::string& why) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const std::int64_t own = why.empty() ? kNone : mesh_.rank().value();
  const std::int64_t first = comm::all_reduce_scalar(mesh_.control(), own, comm::Op::min);
  if (first == kNone) return false;
  const std::string reason = comm::broadcast_string(mesh_.control(), why, static_cast<int>(first));
  if (mesh_.rank().value() == 0)
    log::warning("compile.enable: steps are no CUDA graphs, as rank {} cannot record one: {}",
                 first, reason);
  executor_.abandon_step();
  stages_.end_step(parallel::StepEnd::abandoned);
  comm::note_graph_abandoned();
  wanted_ = false;
  return true;
}

std::vector<at::Tensor> Passes::issue(const Batch& batch, const plan::MicrobatchPlan& microbatches,
                                      double scale) {
  const plan::BatchPlan& sizes = microbatches.batch;
  const schedule::ActionList& actions = microbatches.pipeline.lists[parallel::pipeline_rank(mesh_)];
  std::vector<at::Tensor> token_losses;
  stages_.begin_step(sizes.microbatches_a_step());
  std::optional<metrics::PhaseTimer::Scope> phase(std::in_place, timer_, metrics::Phase::forward);
  for (int round = 0; round < sizes.rounds; ++round) {  // the executor charges backward to its own
    const int first = round * sizes.microbatches;
    const auto part =
        std::span(batch.microbatches)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(sizes.microbatches));
    auto pass = executor_.run(actions, part, first, scale);
    std::ranges::move(pass.token_losses, std::back_inserter(token_losses));
  }
  phase.reset();
  phase.emplace(timer_, metrics::Phase::communication);
  stages_.finish_gradients();
  return token_losses;
}

}  // namespace tessera::train
