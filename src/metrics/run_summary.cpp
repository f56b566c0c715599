// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/run_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "tessera/base/shell_words.hpp"
#include "tessera/metrics/human.hpp"

namespace tessera::metrics {
namespace {

std::string summary_row(std::string_view name, const std::string& value) {
  return fmt::format("  {:<15}{}\n", name, value);
}

double extra_of(const StepRecord& record, std::string_view name) {
  const auto found = std::ranges::find(record.extra, name, &std::pair<std::string, double>::first);
  return found == record.extra.end() ? 0 : found->second;
}

}  // namespace

void RunSummary::step(const StepRecord& record) {
  if (std::isnan(first_loss_)) first_loss_ = record.loss;
  if (std::isfinite(record.loss)) loss_ = record.loss;
  ++steps_;
  tokens_ += record.tokens;
  step_seconds_ += record.step_seconds;
  mfu_seconds_ += record.mfu * record.step_seconds;
  causal_seconds_ += extra_of(record, "mfu_causal") * record.step_seconds;
  memory_bytes_ = std::max(memory_bytes_, record.memory_bytes);
  skipped_ = static_cast<std::int64_t>(extra_of(record, "skipped_steps"));
}

std::string RunSummary::text(const std::filesystem::path& folder, Kept kept,
                             const std::string& times) const {
  std::string text = heading(kept) + "\n" + figures();
  if (steps_ > 0) text += times;
  std::error_code ignored;
  for (const auto& [name, file] :
       {std::pair{"loss curve", "loss.svg"}, std::pair{"report", "index.html"}})
    if (std::filesystem::exists(folder / file, ignored))
      text += summary_row(name, (folder / file).string());
  return text + "next:\n" + next_commands(shell_word(folder.string()), kept);
}

std::int64_t RunSummary::steps_done() const { return std::max(first_step_ - 1, last_step_); }

std::string RunSummary::heading(Kept kept) const {
  const std::int64_t done = steps_done();
  const std::string text =
      done > last_step_
          ? fmt::format("the run has {} steps, and training.steps is {}", done, last_step_)
          : fmt::format("training is complete ({} of {} steps)", done, last_step_);
  if (first_step_ <= last_step_) return text;
  return text + "; there is nothing to do" +
         (kept == Kept::state ? ": raise training.steps to train longer" : "");
}

std::string RunSummary::figures() const {
  if (steps_ == 0) return "";
  std::string text = summary_row(
      "loss", fmt::format("{:.5f} ({}: {:.5f})", loss_,
                          first_step_ > 1 ? fmt::format("step {}", first_step_) : "first step",
                          first_loss_));
  text += summary_row(
      "speed",
      fmt::format("{} tok/s: {} tokens in {}",
                  human_count(static_cast<double>(tokens_) / std::max(step_seconds_, 1e-9)),
                  human_count(static_cast<double>(tokens_)), human_duration(step_seconds_)));
  if (mfu_seconds_ > 0)
    text += summary_row("mfu", fmt::format("{:.1f} % with full attention, as TorchTitan counts; "
                                           "{:.1f} % with causal attention",
                                           100 * mfu_seconds_ / step_seconds_,
                                           100 * causal_seconds_ / step_seconds_));
  text += summary_row("memory", human_bytes(memory_bytes_) + " on the largest rank");
  if (skipped_ > 0)
    text += summary_row("skipped steps", fmt::format("{} of {}: loss or gradient was not finite",
                                                     skipped_, last_step_));
  return text;
}

std::string RunSummary::next_commands(const std::string& folder, Kept kept) const {
  const std::string longer = summary_row(
      "train longer", fmt::format("the same command with --training.steps {}", 2 * steps_done()));
  if (kept == Kept::nothing || kept == Kept::only_loaded)
    return summary_row("keep weights", kept == Kept::nothing
                                           ? "the same command with --checkpoint.enable"
                                           : "train without checkpoint.load_only, in another "
                                             "job.dump_folder") +
           longer +
           summary_row("see settings", fmt::format("tessera config show {}/config.toml", folder));
  return summary_row("generate text",
                     fmt::format("tessera generate {} --prompt 'Once upon a time'", folder)) +
         summary_row("export weights", fmt::format("tessera ckpt export {} --to DIR", folder)) +
         (kept == Kept::state ? longer : "");
}

}  // namespace tessera::metrics
