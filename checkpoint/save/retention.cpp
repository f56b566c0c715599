// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/retention.hpp"

#include <algorithm>

#include "format/step_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

bool is_kept_for_ever(std::int64_t step, const Retention& retention) {
  return retention.keep_every > 0 && step % retention.keep_every == 0;
}

std::vector<StepFolder> newest_first(const fs::path& folder) {
  std::vector<StepFolder> steps = list_steps(folder);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::vector<Removal> plan_steps(const fs::path& folder, const PruneOptions& options) {
  const Retention& retention = options.retention;
  std::vector<Removal> removals;
  std::int64_t kept = 0;
  for (const StepFolder& step : newest_first(folder)) {
    const bool proven = kept > 0;  // the first that counts is read to its last byte
    const auto findings = verify(step.path, !proven);
    if (!can_load(findings)) {
      if (!proven || !options.damaged) continue;
      if (std::ranges::all_of(findings, &Finding::is_damage))
        removals.push_back({step.path, describe(findings, 1)});
      else
        log::warning("{} is not removed, as it may be whole: {}", step.path.string(),
                     describe(findings, 1));
    } else if (kept < retention.keep_latest) {
      ++kept;
    } else if (!is_kept_for_ever(step.step, retention)) {
      removals.push_back(
          {step.path, fmt::format("older than the latest {}", retention.keep_latest)});
    }
  }
  return removals;
}

}  // namespace

void retain(const fs::path& folder, const Retention& retention, std::int64_t saved_step) {
  if (retention.keep_latest <= 0) return;
  std::int64_t kept = 1;  // the one just saved
  for (const StepFolder& step : newest_first(folder)) {
    if (step.step >= saved_step) continue;
    if (kept < retention.keep_latest) {
      kept += can_load(verify(step.path, false));
      continue;
    }
    if (is_kept_for_ever(step.step, retention)) continue;
    try {
      remove_step(step.path);
    } catch (const Error& error) {
      log::warning("{}", error.what());
    }
  }
}

std::vector<Removal> plan_prune(const fs::path& folder, const PruneOptions& options) {
  require(options.retention.keep_latest >= 1, ExitCode::usage,
          "keep at least the latest checkpoint, not {}", options.retention.keep_latest);
  std::vector<Removal> removals = plan_steps(folder, options);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const Leftover kind = leftover_of(entry.path());
    if (kind == Leftover::debris)
      removals.push_back({entry.path(), "incomplete: its save or its removal was interrupted"});
    if (kind == Leftover::damaged && options.damaged)
      removals.push_back({entry.path(), "set aside as damaged"});
    if (kind == Leftover::partial && options.partial &&
        is_dead_partial(entry.path(), options.stale_partial_seconds))
      removals.push_back({entry.path(), "left by a save that has ended"});
  }
  return removals;
}

void prune(const fs::path& folder, const std::vector<Removal>& removals) {
  for (const Removal& removal : removals) {
    if (leftover_of(removal.path) == Leftover::none)
      remove_step(removal.path);
    else
      remove_quietly(removal.path);
  }
  if (!removals.empty() && check_hint(folder)) write_hint(folder);
}

}  // namespace tessera::checkpoint
