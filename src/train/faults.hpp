// SPDX-License-Identifier: Apache-2.0
// What a run does when numbers go wrong: losses or gradients that are not finite, spikes, replicas
// that drift apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reporter.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/train/loss_spikes.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::train {

/// Steps count from 1 here. All methods are collective, and come to the same result on every rank.
class Faults {
 public:
  enum class Verdict : std::uint8_t { go_on, go_back, stop };

  /// Collective. What it keeps of a fault goes into the run's folder. All must outlive this.
  Faults(const plan::JobPlan& plan, Trainer& trainer, Reporter& reporter,
         const data::SampleSource& source);

  /// By optimizer.on_nonfinite, spike_zscore and on_spike; fills in outcome.zscore. Keeps the batch
  /// of a fault. Throws Error(nonfinite) after optimizer.max_skipped_steps faults in a row.
  Verdict judge(std::int64_t step, StepOutcome& outcome);
  /// After Verdict::go_back: loads the last checkpoint, continues with the sample after `step`, so
  /// that what the steps in between read is skipped (as in the training of PaLM,
  /// https://arxiv.org/abs/2204.02311, section 5.1). Throws Error(nonfinite) if there is no
  /// checkpoint, or after too many jumps to one.
  void go_back(std::int64_t step);
  /// After Verdict::stop, when what could be saved is.
  [[noreturn]] void stop(std::int64_t step) const;
  /// Every debug.check_replicas steps. Throws Error(environment) that names the rank whose
  /// parameters differ.
  void check_replicas(std::int64_t step);

 private:
  /// A resumed run knows spikes by the losses that its metrics have.
  void recall_losses();
  Verdict judge_nonfinite(std::int64_t step, const StepOutcome& outcome);
  std::optional<LoadedState> load_before(std::int64_t step);
  /// What the run began without begins again as it did then.
  void start_again(const plan::LoadChoice& choice);
  void keep(std::int64_t step, const std::string& what);

  const plan::JobPlan& plan_;
  Trainer& trainer_;
  Reporter& reporter_;
  const data::SampleSource& source_;
  LossSpikes spikes_;
  std::string what_, kept_in_;               ///< of the last fault
  std::int64_t skipped_ = 0;                 ///< steps in a row
  std::int64_t jumps_ = 0, jumped_to_ = -1;  ///< jumps in a row to the same step
};

}  // namespace tessera::train
