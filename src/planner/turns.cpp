// SPDX-License-Identifier: Apache-2.0
// The best changes of one knob, for a job that is slow or that does not fit.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "each_variant.hpp"
#include "tessera/planner/search.hpp"

namespace tessera::planner {
namespace {

/// Of a step or of memory; less is not worth a change.
constexpr double kWorth = 0.03;
constexpr std::size_t kMostShown = 3, kMostKeys = 2;
/// Of the memory that there is, and of that predicted of a job that did not fit: a change must
/// leave no more. Allocators lose some to rounding and fragmentation.
constexpr double kSpared = 0.9;

struct OneTurn {
  Knob knob;
  Variant variant;
  Price price;
};

/// Memory alone where the machine does not have the precision.
Price known_price(const Workload& work, const Machine& machine, const Stack& stack) {
  if (machine.ceiling_of(format_of(work.precision)) > 0) return price(work, machine, stack);
  Price out;
  out.memory = memory_of(work, stack);
  out.fits = fits(out.memory, machine);
  return out;
}

/// Every legal variant with one knob turned.
std::vector<OneTurn> single_turns(const VariantSpace& space, const Machine& machine,
                                  const Stack& stack) {
  std::vector<OneTurn> out;
  each_turned(space, kEachKnob, 1, space.own(), [&](const Variant& variant) {
    if (!space.legal(variant)) return;
    const auto turned = std::ranges::find_if(
        kEachKnob, [&](Knob knob) { return variant[knob] != space.own()[knob]; });
    Price priced = known_price(space.workload(variant), machine, stack);
    out.push_back({*turned, variant, std::move(priced)});
  });
  return out;
}

/// The first turns of different knobs that are a job of few changed keys.
std::vector<Option> first_jobs(const VariantSpace& space, const std::vector<OneTurn>& turns) {
  std::vector<Option> out;
  std::set<Knob> used;
  for (const OneTurn& turn : turns) {
    if (out.size() == kMostShown) break;
    if (used.contains(turn.knob)) continue;
    std::optional<ChangedJob> job = space.job(turn.variant);
    if (!job || job->changes.size() > kMostKeys) continue;
    used.insert(turn.knob);
    out.push_back({turn.variant, std::move(job->changes), std::move(job->job), turn.price});
  }
  return out;
}

std::vector<Option> faster_turns(const VariantSpace& space, std::vector<OneTurn> turns,
                                 const Price& own) {
  std::erase_if(turns, [&](const OneTurn& turn) {
    return !turn.price.fits || turn.price.step_seconds > (1 - kWorth) * own.step_seconds;
  });
  std::ranges::stable_sort(turns, {}, [](const OneTurn& turn) { return turn.price.step_seconds; });
  return first_jobs(space, turns);
}

std::vector<Option> sparing_turns(const VariantSpace& space, std::vector<OneTurn> turns,
                                  const Price& own, double room) {
  std::erase_if(turns, [&](const OneTurn& turn) {
    return turn.price.memory.total() > (1 - kWorth) * own.memory.total();
  });
  std::ranges::stable_sort(turns, {}, [&](const OneTurn& turn) {
    const double bytes = turn.price.memory.total();
    return bytes <= room ? std::tuple{0, turn.price.step_seconds, bytes}
                         : std::tuple{1, bytes, 0.0};
  });
  return first_jobs(space, turns);
}

}  // namespace

BestTurns best_turns(const VariantSpace& space, double room_bytes, const Machine& machine,
                     const Stack& stack) {
  BestTurns out;
  out.own = known_price(space.own_work(), machine, stack);
  const double predicted = out.own.memory.total();
  out.spared_room = kSpared * (room_bytes > 0 ? std::min(room_bytes, predicted) : predicted);
  const std::vector<OneTurn> turns = single_turns(space, machine, stack);
  if (out.own.step_seconds > 0) out.faster = faster_turns(space, turns, out.own);
  out.sparing = sparing_turns(space, turns, out.own, out.spared_room);
  return out;
}

}  // namespace tessera::planner
