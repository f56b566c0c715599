// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/automatic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "automatic_rules.hpp"
#include "starting_job.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/planner/search.hpp"

namespace tessera::planner {
namespace {

using namespace config::key_names;

/// The variants of a job with one split into stages, and the fastest of them.
struct Trial {
  StartingJob start;
  VariantSpace space;
  std::string split;
  std::optional<Option> best;

  Trial(StartingJob from, const Machine& machine, const Stack& stack)
      : start(std::move(from)),
        space(start.job, start.plan, machine, stack),
        split(start.job.job.parallelism.pipeline_parallel_split) {}
};

class Choice {
 public:
  Choice(config::Reading& job, int ranks, std::int64_t vocabulary, const Machine& machine,
         const Stack& stack)
      : job_(job), ranks_(ranks), vocabulary_(vocabulary), machine_(machine), stack_(stack) {
    for (const config::Option* option : config::left_to_planner(job.resolved.job))
      open_.insert(option->key);
    follow();
  }

  void run() {
    const bool cuts = open_.contains(kSplit);
    for (const char* split : {"layers", "balanced", "balanced_sublayer"}) {
      if (!try_split(cuts ? split : nullptr)) return;
      if (!cuts) break;
    }
    const auto best = std::ranges::min_element(trials_, {}, [](const auto& trial) {
      return trial->best ? trial->best->price.step_seconds : HUGE_VAL;
    });
    if (!(*best)->best) return nothing_fits(**best);
    explain(**best);
    adopt(*(*best)->best);
  }

 private:
  /// Keys that go with those that are open.
  void follow() {
    const config::Parallelism& keys = job_.resolved.job.parallelism;
    const auto follows = [&](std::string_view key, std::string_view leader) {
      open_.insert(key);
      leaders_[key] = leader;
    };
    if (open_.contains(kMode) && !job_.written(kOption)) follows(kOption, kMode);
    const bool timed = keys.pipeline_parallel_microbatch_size == 0;
    if (open_.contains(kLocal) && (timed || !job_.written(kMicro)))
      follows(kMicro, kLocal);
    else if (open_.contains(kPp) && timed)
      follows(kMicro, kPp);
  }

  /// `split`: null for the job's own. False where the job has problems.
  bool try_split(const char* split) {
    config::Reading reading = job_;
    std::set<std::string_view> open = open_;
    if (split) {
      reading.resolved.job.parallelism.pipeline_parallel_split = split;
      open.erase(kSplit);
    }
    std::vector<config::Problem> problems;
    std::optional<StartingJob> start =
        starting_job(reading, open, planner_, ranks_, vocabulary_, problems);
    if (!start) {
      job_.problems.insert(job_.problems.end(), problems.begin(), problems.end());
      return false;
    }
    try {
      trials_.push_back(std::make_unique<Trial>(std::move(*start), machine_, stack_));
    } catch (const Error& error) {
      job_.complain_of({*open_.begin()}, error.what());
      return false;
    }
    const Precision precision = trials_.back()->space.own_work().precision;
    if (!job_.obey({kMachine, "training.mixed_precision_param", "model.converters"},
                   [&] { require_products(precision, machine_); }))
      return false;
    find_best(*trials_.back());
    return true;
  }

  void find_best(Trial& trial) {
    VariantSpace& space = trial.space;
    space.change_only({open_.begin(), open_.end()});
    for (const auto& [knob, key] : {std::pair{Knob::tp, kTp},
                                    {Knob::cp, kCp},
                                    {Knob::ep, kEp},
                                    {Knob::pp, kPp},
                                    {Knob::replicate, kReplicate},
                                    {Knob::recompute, kMode}})
      if (!open_.contains(key)) space.restrict_to(knob, {space.own()[knob]});
    for (const Knob knob : {Knob::etp, Knob::async_tp, Knob::once, Knob::precision, Knob::reshard,
                            Knob::accumulate, Knob::schedule, Knob::split})
      space.restrict_to(knob, {space.own()[knob]});
    const std::vector<int> degrees = space.values(Knob::pp), rows = space.values(Knob::microbatch);
    for (const bool pipelined : {false, true}) {
      std::vector<int> these = degrees;
      std::erase_if(these, [&](int degree) { return (degree > 1) != pipelined; });
      if (these.empty()) continue;
      space.restrict_to(Knob::pp, these);
      space.restrict_to(Knob::microbatch, microbatches(rows, pipelined));
      SearchResult found = search(space, machine_, stack_, 1);
      if (!found.best.empty() &&
          (!trial.best || found.best.front().price.step_seconds < trial.best->price.step_seconds))
        trial.best = std::move(found.best.front());
    }
    space.restrict_to(Knob::pp, degrees);
    if (trial.best)
      space.restrict_to(Knob::microbatch, microbatches(rows, trial.best->variant[Knob::pp] > 1));
  }

  /// A microbatch has the rows of one key or another.
  std::vector<int> microbatches(const std::vector<int>& all, bool pipelined) const {
    if (open_.contains(pipelined ? kMicro : kLocal)) return all;
    const config::JobConfig& job = job_.resolved.job;
    return {static_cast<int>(pipelined ? job.parallelism.pipeline_parallel_microbatch_size
                                       : job.training.local_batch_size)};
  }

  void nothing_fits(const Trial& trial) {
    const auto remedy = smallest_remedy(trial.start.job, trial.space, machine_, stack_);
    job_.complain_of(
        {*open_.begin()},
        fmt::format("no values of {} fit {} x {} with {:.1f} GiB; {}", fmt::join(open_, ", "),
                    ranks_, machine_.name, machine_.memory_bytes / kGiB,
                    remedy && remedy->bfloat16_state
                        ? fmt::format("set {}", fmt::join(remedy->option.changes, ", "))
                    : remedy && remedy->other_gpus
                        ? fmt::format("take {} ranks with {}", remedy->gpus,
                                      fmt::join(remedy->option.changes, ", "))
                        : "see `tessera plan` for what else makes the job smaller"));
  }

  void explain(const Trial& trial) {
    const Price& price = trial.best->price;
    std::vector<std::string> values;
    for (const std::string_view key : open_) {
      if (leaders_.contains(key)) continue;
      const config::Option& option = *config::find_option(key);
      values.push_back(
          fmt::format("{} = {}", key, config::to_toml(get(option, trial.best->job.job))));
    }
    const config::ActivationCheckpoint& recompute = trial.best->job.job.activation_checkpoint;
    if (leaders_.contains(kOption) && recompute.mode == "selective")
      values.push_back(fmt::format("{} = \"{}\"", kOption, recompute.selective_ac_option));
    std::vector<std::string>& out = job_.resolved.choices;
    out.push_back(fmt::format(
        "auto on {} x {}: {}: the fastest of those that fit, {:.0f} tokens/s a {}, {:.1f} of "
        "{:.1f} GiB",
        ranks_, machine_.name, fmt::join(values, ", "), price.tokens_per_second_per_gpu,
        unit_of(machine_), price.memory.total() / kGiB, machine_.memory_bytes / kGiB));
    for (const KnobEffect& effect : knob_effects(trial.space, *trial.best, machine_, stack_)) {
      std::vector<std::string> turns;
      for (const Turn& turn : effect.turns)
        turns.push_back(turn.fits ? fmt::format("{} {:+.1f} %", turn.value, 100 * turn.faster)
                                  : fmt::format("{} does not fit", turn.value));
      out.push_back(fmt::format("auto: {} {}; with the other values kept, {}", effect.knob,
                                effect.value, fmt::join(turns, ", ")));
    }
    for (const auto& other : trials_)
      if (other.get() != &trial && other->best)
        out.push_back(
            fmt::format("auto: split {}; {} {:+.1f} %", trial.split, other->split,
                        100 * (price.step_seconds / other->best->price.step_seconds - 1)));
  }

  void adopt(const Option& best) {
    config::Resolved& to = job_.resolved;
    to.job = best.job.job;
    for (const std::string_view key : open_) {
      const auto leader = leaders_.find(key);
      to.origins[std::string(key)] = leader != leaders_.end()
                                         ? std::string(leader->second)
                                         : fmt::format("auto of {}", job_.place_of(key).origin());
    }
    if (to.origin("validation.local_batch_size") == kLocal)
      to.job.validation.local_batch_size = to.job.training.local_batch_size;
  }

  config::Reading& job_;
  int ranks_;
  std::int64_t vocabulary_;
  const Machine& machine_;
  const Stack& stack_;
  std::set<std::string_view> open_;
  std::map<std::string_view, std::string_view> leaders_;  ///< of keys that follow others
  plan::Planner planner_;
  std::vector<std::unique_ptr<Trial>> trials_;
};

}  // namespace

void choose_values(config::Reading& job, int ranks, std::int64_t vocabulary, const Machine& machine,
                   const Stack& stack) {
  AutomaticRules rules(job, ranks);
  if (!rules.asked() || !rules.obeyed()) return;
  Choice(job, ranks, vocabulary, machine, stack).run();
}

void choose_values(config::Reading& job, int ranks, std::int64_t vocabulary) {
  AutomaticRules rules(job, ranks);
  if (!rules.asked()) return;
  const std::optional<std::string>& name = job.resolved.job.job.machine;
  const std::string_view key = rules.first();
  if (!name)
    return rules.wrong({key, kMachine},
                       "{} = \"auto\" is chosen for a machine; name it in {}, as "
                       "\"h100-700w\" or \"host\" (`tessera plan --help` lists names)",
                       key, kMachine);
  try {
    const Machine machine = machine_of(*name, std::max(1, ranks));
    choose_values(job, ranks, vocabulary, machine, load_stack(stack_of(machine)));
  } catch (const Error& error) {
    rules.wrong({kMachine}, "{}: {}", kMachine, error.what());
  }
}

}  // namespace tessera::planner
