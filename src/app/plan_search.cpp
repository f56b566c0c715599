// SPDX-License-Identifier: Apache-2.0
#include "plan_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

namespace tessera::app {
namespace {

using planner::kGiB;

double faster(const planner::Price& own, const planner::Price& other) {
  return other.tokens_per_second_per_gpu / own.tokens_per_second_per_gpu - 1;
}

std::string words_of(const std::vector<std::string>& changes) {
  return changes.empty() ? "the job as it is" : fmt::format("{}", fmt::join(changes, ", "));
}

void print_option(const planner::Option& option, const Advice& advice) {
  std::cout << fmt::format("{:>6.0f} tokens/s a {} ({:+.1f} %), {:.1f} GiB: {}\n",
                           option.price.tokens_per_second_per_gpu, advice.unit,
                           100 * faster(advice.own, option.price),
                           option.price.memory.total() / kGiB, words_of(option.changes));
  if (!option.changes.empty())
    std::cout << "       " << planner::reason(advice.own, option.price) << '\n';
}

void print_remedy(const Advice& advice) {
  if (!advice.remedy) {
    std::cout << fmt::format(
        "no variant fits, nor with 2, 4, ... times as many {}s, or a half, a quarter, ...\n",
        advice.unit);
    return;
  }
  const planner::Option& option = advice.remedy->option;
  std::vector<std::string> changes = option.changes;
  if (advice.remedy->other_gpus)
    changes.insert(changes.begin(), fmt::format("--gpus {}", advice.remedy->gpus));
  std::cout << fmt::format(
      "smallest change that makes it fit:\n  {}: {:.0f} tokens/s a {}, {:.1f} GiB\n",
      fmt::join(changes, ", "), option.price.tokens_per_second_per_gpu, advice.unit,
      option.price.memory.total() / kGiB);
}

void print_decision(const Advice& advice) {
  std::cout << "how the choice follows:\n";
  int number = 0;
  for (const planner::Question& question : advice.decision->questions)
    std::cout << fmt::format("{:>4}. {} {}: {}\n", ++number, question.text,
                             question.yes ? "Yes" : "No", question.why);
  std::cout << "choice, against the job as it is:\n";
  if (advice.decision->choice)
    print_option(*advice.decision->choice, advice);
  else
    std::cout << "  none: no variant fits\n";
}

std::string text_of(const planner::Turn& turn) {
  return turn.fits ? fmt::format("{} {:+.1f} %", turn.value, 100 * turn.faster)
                   : fmt::format("{} does not fit", turn.value);
}

nlohmann::json mesh_of(const planner::Option& option) {
  nlohmann::json out;
  for (const auto& [name, knob] : {std::pair{"pp", planner::Knob::pp},
                                   {"dp_replicate", planner::Knob::replicate},
                                   {"tp", planner::Knob::tp},
                                   {"cp", planner::Knob::cp},
                                   {"ep", planner::Knob::ep}})
    out[name] = option.variant[knob];
  return out;
}

nlohmann::json json_of(const planner::Option& option, const planner::Price& own) {
  const planner::Price& price = option.price;
  return {{"changes", option.changes},
          {"tokens_per_second_per_gpu", price.tokens_per_second_per_gpu},
          {"faster", faster(own, price)},
          {"step_seconds", price.step_seconds},
          {"bubble", price.bubble},
          {"memory_gib", price.memory.total() / kGiB},
          {"mesh", mesh_of(option)},
          {"reason", planner::reason(own, price)}};
}

}  // namespace

Advice advice_of(const config::Resolved& job, const planner::VariantSpace& space,
                 const planner::Price& own, const planner::Machine& machine,
                 const planner::Stack& stack, const Wanted& wanted) {
  Advice out{own, {}, {}, {}, {}, planner::unit_of(machine)};
  if (wanted.explain) out.decision = planner::decide(space, machine, stack);
  if (wanted.search) out.found = planner::search(space, machine, stack);
  if (!out.found.best.empty())
    out.knobs = planner::knob_effects(space, out.found.best.front(), machine, stack);
  if (!own.fits) out.remedy = planner::smallest_remedy(job, space, machine, stack);
  return out;
}

void print(const Advice& advice) {
  if (!advice.own.fits) print_remedy(advice);
  if (advice.decision) print_decision(advice);
  if (advice.found.best.empty()) return;
  std::cout << fmt::format("best variants, against the job as it is ({} were timed):\n",
                           advice.found.priced);
  for (const planner::Option& option : advice.found.best) print_option(option, advice);
  std::cout << "what each knob of the first changes:\n";
  for (const planner::KnobEffect& effect : advice.knobs) {
    std::vector<std::string> turns;
    for (const planner::Turn& turn : effect.turns) turns.push_back(text_of(turn));
    std::cout << fmt::format("  {:<16} {}: {}\n", effect.knob, effect.value,
                             fmt::join(turns, ", "));
  }
}

nlohmann::json explained(const Advice& advice) {
  nlohmann::json questions = nlohmann::json::array();
  for (const planner::Question& question : advice.decision->questions) {
    questions.push_back(
        {{"question", question.text}, {"yes", question.yes}, {"why", question.why}});
    if (question.best) questions.back()["best"] = json_of(*question.best, advice.own);
  }
  nlohmann::json out{{"questions", std::move(questions)}};
  if (advice.decision->choice) out["choice"] = json_of(*advice.decision->choice, advice.own);
  return out;
}

nlohmann::json as_json(const Advice& advice) {
  nlohmann::json out{{"priced", advice.found.priced},
                     {"best", nlohmann::json::array()},
                     {"knobs", nlohmann::json::object()}};
  for (const planner::Option& option : advice.found.best)
    out["best"].push_back(json_of(option, advice.own));
  for (const planner::KnobEffect& effect : advice.knobs) {
    nlohmann::json turns = nlohmann::json::object();
    for (const planner::Turn& turn : effect.turns)
      turns[turn.value] = turn.fits ? nlohmann::json(turn.faster) : nlohmann::json();
    out["knobs"][effect.knob] = {{"value", effect.value}, {"faster_with", turns}};
  }
  if (advice.remedy) {
    out["smallest_change"] = json_of(advice.remedy->option, advice.own);
    out["smallest_change"]["gpus"] = advice.remedy->gpus;
  }
  return out;
}

}  // namespace tessera::app
