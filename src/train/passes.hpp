// SPDX-License-Identifier: Apache-2.0
// Forward and backward of a step on this rank, up to its summed gradients: issued call by call, or
// launched as a CUDA graph.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixed_rows.hpp"
#include "step_graph.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/parallel/stages.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/batch.hpp"
#include "tessera/train/exchange_attempts.hpp"

namespace tessera::train {

/// Why steps of this job cannot be graphs; empty if they can.
std::string obstacle_to_graphs(const plan::JobPlan& plan, mesh::DeviceMesh& mesh,
                               at::Device device);

class Passes {
 public:
  /// What is given must outlive this. Rank 0 logs why a job that asks for graphs gets none.
  Passes(const plan::JobPlan& plan, mesh::DeviceMesh& mesh, parallel::Stages& stages,
         metrics::PhaseTimer& timer, at::Device device);

  /// Leaves the gradients in the stages' groups, summed over the job. `scale`: 1 / valid tokens.
  /// Returns the losses of the microbatches' tokens, in the order of the batch, on the last stage:
  /// valid until the next call. Does not wait for the device without a capacity of experts. With
  /// one, a step whose rows do not fit on some rank is computed again. A step that some rank cannot
  /// capture is issued call by call on all, and so are the next ones.
  std::vector<at::Tensor> run(const Batch& batch, const plan::MicrobatchPlan& microbatches,
                              double scale);
  /// Microbatches have other sizes from now on.
  void forget_graph();
  /// See Executor::current_microbatch().
  int current_microbatch() const noexcept { return executor_.current_microbatch(); }

 private:
  /// What was captured, and the memory that it reads and writes.
  struct Captured {
    std::unique_ptr<StepGraph> graph;
    Batch batch;
    std::vector<at::Tensor> token_losses;
    std::vector<parallel::GatherCount> gathers;  ///< of a launch, by group
  };
  std::vector<parallel::GatherCount> gathers() const;
  bool rows_fit();
  std::vector<at::Tensor> launch_or_issue(const Batch& batch,
                                          const plan::MicrobatchPlan& microbatches, double scale);
  bool may_launch(double scale);
  void refresh_copies();
  bool capture(const Batch& batch, const plan::MicrobatchPlan& microbatches, double scale);
  bool give_up_if_refused(const std::string& why);
  std::vector<at::Tensor> issue(const Batch& batch, const plan::MicrobatchPlan& microbatches,
                                double scale);
  void tell(const std::string& reason);

  mesh::DeviceMesh& mesh_;
  parallel::Stages& stages_;
  std::vector<parallel::ShardGroup*> groups_;  ///< of them
  metrics::PhaseTimer& timer_;
  at::Device device_;
  parallel::Executor executor_;
  std::optional<FixedRows> fixed_rows_;  ///< with a capacity
  ExchangeAttempts attempts_;            ///< then
  bool wanted_;
  bool told_ = false;            ///< that a step is issued call by call
  std::optional<double> scale_;  ///< of the step before, and of what was captured
  int copies_freed_ = 0;         ///< how often, when a graph was last captured or launched
  std::optional<Captured> captured_;
};

}  // namespace tessera::train
