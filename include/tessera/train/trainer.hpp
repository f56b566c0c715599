// SPDX-License-Identifier: Apache-2.0
// One rank's training state and one optimizer step.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/comm/world.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/parallel/gradient_norm.hpp"
#include "tessera/parallel/stages.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/batch_sender.hpp"
#include "tessera/train/step_votes.hpp"
#include "tessera/train/train_state.hpp"
#include "tessera/train/weight_update.hpp"

namespace tessera::train {

/// How evenly a mixture's experts were used in a step.
struct ExpertLoad {
  std::string name;  ///< "layers.3.moe"
  /// tokens of the busiest expert over those of the average one; 1 = even
  double max_over_mean = 0;
  double entropy = 0;  ///< of the experts' shares, over its greatest value; 1 = even
};

/// What a step did; the same on every rank.
struct StepOutcome {
  double loss = 0;  ///< cross-entropy summed over the valid tokens of the global batch, divided by
                    ///< their number
  double grad_norm = 0;  ///< before clipping; NaN if the gradient was not finite
  double lr = 0;
  bool skipped = false;   ///< loss or gradient was not finite: nothing was updated
  double zscore = 0;      ///< of the loss, if the run looks for spikes
  std::string nonfinite;  ///< which parameter on which rank, then, and which samples, if their loss
                          ///< shows it
  StepVotes votes;        ///< of all ranks
  /// what the auxiliary and z losses of mixtures add to `loss` in the gradient
  double balance_loss = 0;
  std::vector<ExpertLoad> loads;  ///< of each mixture
  /// Of each source of a mixture of data: `loss` over its tokens alone; NaN where the step has
  /// none.
  std::vector<std::pair<std::string, double>> source_losses;
};

/// What this rank of the mesh reads of a batch.
Reader reader_of(mesh::DeviceMesh& mesh, const schedule::StageMap& map);

class Passes;

class Trainer {
 public:
  /// What is given must outlive the trainer. Collective where the plan leaves it to time cells in
  /// which stage they are.
  Trainer(const plan::JobPlan& plan, const model::Model& model, mesh::DeviceMesh& mesh,
          const data::SampleSource& source, at::Device device);
  ~Trainer();

  /// What this rank votes for, asked when the loss is reduced.
  using Vote = std::function<StepVotes()>;

  /// The first half of the next step, collective: its gradients, which are in the stages' groups
  /// then, summed over the job and unclipped. Does not wait for the device.
  void compute();
  /// The second half, collective: updates the weights, or skips the step if loss or gradients are
  /// not finite. What looks at gradients, or changes them, does so before. Waits for the device
  /// once, before the update, which may still run when this returns.
  StepOutcome apply(const Vote& vote = {});
  /// Both.
  StepOutcome step(const Vote& vote = {}) {
    compute();
    return apply(vote);
  }

  /// From the next step on: the same global batch in other microbatches.
  void set_microbatches(const plan::MicrobatchPlan& microbatches);
  const plan::MicrobatchPlan& microbatches() const { return microbatches_; }
  const plan::BatchPlan& batch_plan() const { return microbatches_.batch; }
  const TrainState& state() const { return state_; }
  /// Of a run that resumes, rewinds or skips batches.
  void set_state(const TrainState& state) { state_ = state; }
  /// Number of the first sample of step `step` (from 0), as batches follow each other from the
  /// state on.
  std::int64_t first_sample(std::int64_t step) const {
    return state_.samples + (step - state_.step) * batch_plan().global_batch;
  }

  parallel::Stages& stages() { return stages_; }
  const plan::StageRanges& stage_ranges() const { return ranges_; }
  const model::Model& model() const { return model_; }
  const plan::JobPlan& plan() const { return plan_; }
  const data::SampleSource& source() const { return source_; }
  mesh::DeviceMesh& mesh() { return mesh_; }
  std::vector<optim::ParamState>& optimizer_states() { return weights_.states(); }
  metrics::PhaseTimer& timer() { return timer_; }
  /// "forward and backward, microbatch 3 of 8": where the step is. Any thread may ask.
  std::string whereabouts() const;
  /// What this rank's tensors take now on the device of forward and backward, without activations.
  /// Asks no allocator; any thread may ask while none changes the tensors.
  parallel::MemoryKinds known_memory() const;
  /// The greatest memory seen after a unit's forward or backward pass, in steps for which watch()
  /// was on.
  parallel::MemoryPeak& memory_peak() { return memory_peak_; }

 private:
  /// What compute() has found on this rank, until apply() needs it.
  struct Found {
    Rows rows;
    std::vector<at::Tensor> token_losses;  ///< of its microbatches, on the last stage
    kernels::HostCopy losses;              ///< the same
    parallel::ExpertFigures experts;
    kernels::HostCopy of_experts;  ///< the same: losses, then loads
  };
  const plan::PipelinePlan& pipeline() const { return microbatches_.pipeline; }
  parallel::GradientNorm wait_for_gradients(StepOutcome& outcome, const Vote& vote);
  void reduce_loss(StepOutcome& outcome, const Vote& vote);
  void take_expert_figures();
  std::int64_t first_own_sample() const;  ///< of this rank's rows in the next step
  void balance(StepOutcome& outcome);
  std::string nonfinite_samples();

  const plan::JobPlan& plan_;
  const model::Model& model_;
  mesh::DeviceMesh& mesh_;
  const data::SampleSource& source_;
  at::Device device_;
  parallel::MemoryPeak memory_peak_;  ///< made before what it counts
  plan::MicrobatchPlan microbatches_;
  plan::StageRanges ranges_;
  parallel::Stages stages_;
  WeightUpdate weights_;
  BatchSender batches_;
  metrics::PhaseTimer timer_;
  std::unique_ptr<Passes> passes_;
  TrainState state_;
  Found found_;
};

}  // namespace tessera::train
