// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/run_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

#include "tessera/base/error.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/planner/search.hpp"

namespace tessera::planner {
namespace {

/// Nothing where the job names none, or one that cannot be read.
std::optional<Machine> named_machine(const config::Resolved& job, int ranks_on_node) try {
  const std::optional<std::string>& name = job.job.job.machine;
  if (!name) return std::nullopt;
  return machine_of(*name, ranks_on_node);
} catch (const Error&) {
  return std::nullopt;
}

std::optional<Machine> machine_at(const config::Resolved& job, const RunPlace& place) {
  std::optional<Machine> named = named_machine(job, place.ranks_on_node);
  if (named && named->host.has_value() != place.on_gpus) return named;
  if (place.on_gpus) return std::nullopt;
  return machine_of(this_host(), place.ranks_on_node);
}

std::string keys_of(const Option& option) {
  return fmt::format("{}", fmt::join(option.changes, " and "));
}

/// Step time to that of the job as it is; nothing where one of them is not known.
std::string slower_words(const Option& option, const Price& own) {
  if (option.price.step_seconds <= 0 || own.step_seconds <= 0) return "";
  return fmt::format(" for {:+.0f} % step time",
                     100 * (option.price.step_seconds / own.step_seconds - 1));
}

/// `as_on`: the machine of the times, where it is not that of the run.
std::string sparing_words(const BestTurns& best, const std::string& as_on) {
  if (best.sparing.empty()) return {};
  std::vector<std::string> words;
  for (const Option& option : best.sparing) {
    const double bytes = option.price.memory.total();
    words.push_back(fmt::format(
        "{} wins {}{}{}", keys_of(option),
        metrics::human_bytes(static_cast<std::int64_t>(best.own.memory.total() - bytes)),
        slower_words(option, best.own), bytes <= best.spared_room ? "" : ", not enough alone"));
  }
  return fmt::format("the planner's best changes{}: {}", as_on, fmt::join(words, "; "));
}

RunAdvice advice_of(const config::Resolved& job, const plan::JobPlan& plan, const RunPlace& place) {
  RunAdvice out;
  out.machine = machine_at(job, place);
  const Machine machine = out.machine ? *out.machine : load_machine(kUsualMachine);
  const Stack stack = load_stack(stack_of(machine));
  const VariantSpace space(job, plan, machine, stack);
  const BestTurns best = best_turns(space, place.room_bytes, machine, stack);
  const bool guessed = !out.machine && best.own.step_seconds > 0;
  out.against_memory =
      sparing_words(best, guessed ? fmt::format(" (times as on {})", machine.name) : "");
  if (!out.machine) return out;
  for (const Option& option : best.faster)
    out.faster.push_back(
        fmt::format("{} wins {:.0f} %", keys_of(option),
                    100 * (1 - option.price.step_seconds / best.own.step_seconds)));
  return out;
}

}  // namespace

RunAdvice advice_for(const config::Resolved& job, const plan::JobPlan& plan,
                     const RunPlace& place) noexcept try {
  return advice_of(job, plan, place);
} catch (const std::exception&) {
  return {};
}

}  // namespace tessera::planner
