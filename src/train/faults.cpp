// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <sstream>
#include <utility>

#include "fault_bundle.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "tessera/metrics/record_columns.hpp"
#include "tessera/metrics/run_folder.hpp"
#include "tessera/parallel/replica_check.hpp"

namespace tessera::train {

Faults::Faults(const plan::JobPlan& plan, Trainer& trainer, Reporter& reporter,
               const data::SampleSource& source)
    : plan_(plan), trainer_(trainer), reporter_(reporter), source_(source) {
  if (plan.faults.spike_zscore > 0 && plan.load.resumes && trainer.state().step > 0)
    recall_losses();
}

void Faults::recall_losses() {
  const std::string recorded = comm::on_rank_zero(trainer_.mesh().control(), [&] {
    const std::filesystem::path file = plan_.run.folder / metrics::kMetricsFile;
    std::deque<std::string> lines;  // of no more losses than are compared
    if (!std::filesystem::exists(file)) return std::string();
    try {
      double skipped_before = 0;
      for (const metrics::StepRecord& record : metrics::read_records(file)) {
        const double skipped = metrics::value_in(record, "skipped_steps");
        const bool was_skipped = skipped > std::exchange(skipped_before, skipped);
        if (was_skipped || record.step > trainer_.state().step || !std::isfinite(record.loss))
          continue;
        lines.push_back(fmt::format("{} {}", record.step, record.loss));
        if (lines.size() > LossSpikes::kWindow) lines.pop_front();
      }
    } catch (const Error&) {  // damaged metrics stop no training
      lines.clear();
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
  });
  std::istringstream losses(recorded);
  std::int64_t step = 0;
  double loss = 0;
  while (losses >> step >> loss) spikes_.score(step, loss);
}

Faults::Verdict Faults::judge(std::int64_t step, StepOutcome& outcome) {
  if (outcome.skipped) return judge_nonfinite(step, outcome);
  skipped_ = 0;
  if (plan_.faults.spike_zscore == 0) return Verdict::go_on;
  outcome.zscore = spikes_.score(step, outcome.loss);
  if (outcome.zscore <= plan_.faults.spike_zscore) return Verdict::go_on;
  const bool back = plan_.faults.on_spike == plan::OnSpike::rewind;
  const std::string what =
      fmt::format("loss {:.4f} is {:.1f} standard deviations above the recent losses", outcome.loss,
                  outcome.zscore);
  if (back)
    keep(step, what);
  else
    reporter_.note(fmt::format("step {}: {}", step, what));
  return back ? Verdict::go_back : Verdict::go_on;
}

Faults::Verdict Faults::judge_nonfinite(std::int64_t step, const StepOutcome& outcome) {
  const std::string what = "loss or gradient is not finite, first in " + outcome.nonfinite;
  if (skipped_ == 0) keep(step, what);
  if (plan_.faults.on_nonfinite == plan::OnNonfinite::stop) return Verdict::stop;
  if (plan_.faults.on_nonfinite == plan::OnNonfinite::rewind) return Verdict::go_back;
  reporter_.note(fmt::format("step {} skipped: {}", step, what));
  ++skipped_;
  require(skipped_ <= plan_.faults.max_skipped_steps, ExitCode::nonfinite,
          "{} steps in a row were not finite, the last in {}; lower optimizer.lr or look at {} "
          "(optimizer.max_skipped_steps = {})",
          skipped_, outcome.nonfinite, kept_in_, plan_.faults.max_skipped_steps);
  return Verdict::go_on;
}

void Faults::keep(std::int64_t step, const std::string& what) {
  what_ = what;
  const Fault fault{step, trainer_.first_sample(step - 1), trainer_.batch_plan().global_batch, what,
                    plan_.load.resumes ? plan_.load.checkpoints : std::filesystem::path()};
  kept_in_ = comm::on_rank_zero(trainer_.mesh().control(),
                                [&] { return write_fault_bundle(plan_, fault, source_).string(); });
  reporter_.note(fmt::format("step {}: {}; its batch is in {}", step, what, kept_in_));
}

std::optional<LoadedState> Faults::load_before(std::int64_t step) {
  start_again(plan_.load.own);
  if (auto own = load_state(trainer_, plan_.load.checkpoints, plan_.load.own, step - 1)) return own;
  // A branch that has saved nothing begins again.
  if (!plan_.load.from || !plan_.load.from->branch) return std::nullopt;
  start_again(plan_.load.initial);
  return load_branch(trainer_, step - 1);
}

void Faults::start_again(const plan::LoadChoice& choice) {
  if (!choice.is_partial() && choice.left_out().empty()) return;
  trainer_.stages().initialize(plan_.run.seed);
  for (const at::Tensor& buffer : trainer_.stages().holdings().buffers)
    if (buffer.defined()) buffer.zero_();
  for (optim::ParamState& state : trainer_.optimizer_states()) {
    state.exp_avg.zero_();
    state.exp_avg_sq.zero_();
  }
}

void Faults::go_back(std::int64_t step) {
  const std::int64_t next_sample = trainer_.first_sample(step);
  const auto loaded = plan_.load.resumes ? load_before(step) : std::nullopt;
  require(loaded.has_value(), ExitCode::nonfinite,
          "step {}: {}; there is no checkpoint to rewind to; set checkpoint.enable, and "
          "checkpoint.interval below {}",
          step, what_, step);
  TrainState state = loaded->state;
  jumps_ = state.step == jumped_to_ ? jumps_ + 1 : 1;
  jumped_to_ = state.step;
  require(jumps_ <= plan_.faults.max_skipped_steps, ExitCode::nonfinite,
          "rewound to step {} {} times, the last time because {}; lower optimizer.lr or look at {} "
          "(optimizer.max_skipped_steps = {})",
          jumped_to_, jumps_, what_, kept_in_, plan_.faults.max_skipped_steps);
  state.samples = next_sample;
  trainer_.set_state(state);
  spikes_.forget_after(state.step);
  reporter_.rewind(state.step);
  reporter_.note(fmt::format("rewound to step {}; training continues with sample {}", state.step,
                             next_sample));
}

void Faults::stop(std::int64_t step) const {
  fail(ExitCode::nonfinite, "step {}: {}; look at {} (optimizer.on_nonfinite = \"stop\")", step,
       what_, kept_in_);
}

void Faults::check_replicas(std::int64_t step) {
  const std::int64_t every = plan_.faults.check_replicas;
  if (every == 0 || step % every != 0) return;
  const std::string fault = parallel::find_replica_fault(trainer_.stages(), trainer_.mesh());
  require(fault.empty(), ExitCode::environment,
          "after step {}: {}. The processor or memory of that rank may be faulty: exclude its "
          "node, move newer "
          "checkpoints away, and resume from one before step {} (checkpoint.load_step)",
          step, fault, step - every + 1);
}

}  // namespace tessera::train
