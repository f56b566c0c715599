// SPDX-License-Identifier: Apache-2.0
// Why a variant is faster or slower, by cause and by knob.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "tessera/planner/search.hpp"

namespace tessera::planner {
namespace {

/// Of a step; less is not worth a word.
constexpr double kNoticed = 0.005;
constexpr std::size_t kMostTurns = 6;

struct Cause {
  const char* name;
  double seconds;
};

/// Seconds of a step by cause. They add up to the step.
std::vector<Cause> causes_of(const Price& price) {
  const Exposed& waits = price.exposed;
  std::vector<Cause> out{{"recomputation", price.recompute_seconds},
                         {"tp", waits.tp},
                         {"cp", waits.cp},
                         {"ep", waits.ep},
                         {"pp", waits.pp},
                         {"dp", waits.dp}};
  double rest = price.step_seconds;
  for (const Cause& cause : out) rest -= cause.seconds;
  out.push_back({"kernels", rest});
  return out;
}

/// "-0.31 s", "+2.4 ms"
std::string seconds_text(double seconds) {
  return std::abs(seconds) < 0.1 ? fmt::format("{:+.1f} ms", 1e3 * seconds)
                                 : fmt::format("{:+.2f} s", seconds);
}

/// The values next to that of the best variant, where there are many.
std::vector<int> nearest(const VariantSpace& space, Knob knob, int best) {
  std::vector<int> out = space.values(knob);
  std::ranges::sort(out);
  std::erase(out, best);
  if (knob == Knob::schedule || out.size() <= kMostTurns) return out;
  std::ranges::stable_sort(out, {}, [&](int value) {
    return std::abs(std::log(static_cast<double>(value)) - std::log(static_cast<double>(best)));
  });
  out.resize(kMostTurns);
  std::ranges::sort(out);
  return out;
}

}  // namespace

std::string reason(const Price& own, const Price& other) {
  std::vector<Cause> differences = causes_of(other);
  const std::vector<Cause> before = causes_of(own);
  for (std::size_t i = 0; i < differences.size(); ++i) differences[i].seconds -= before[i].seconds;
  std::erase_if(differences, [&](const Cause& cause) {
    return std::abs(cause.seconds) < kNoticed * own.step_seconds;
  });
  std::ranges::stable_sort(differences, {}, [](const Cause& one) { return one.seconds; });
  std::vector<std::string> parts;
  for (const Cause& cause : differences)
    parts.push_back(fmt::format("{} {}", cause.name, seconds_text(cause.seconds)));
  if (std::abs(own.bubble - other.bubble) >= kNoticed)
    parts.push_back(fmt::format("bubble {:.1f} -> {:.1f} %", 100 * std::max(0.0, own.bubble),
                                100 * std::max(0.0, other.bubble)));
  parts.push_back(
      fmt::format("memory {:+.1f} GiB", (other.memory.total() - own.memory.total()) / kGiB));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<KnobEffect> knob_effects(const VariantSpace& space, const Option& best,
                                     const Machine& machine, const Stack& stack) {
  std::vector<KnobEffect> out;
  for (const Knob knob : kEachKnob) {
    KnobEffect effect{VariantSpace::name_of(knob), space.text_of(knob, best.variant), {}};
    for (const int value : nearest(space, knob, best.variant[knob])) {
      Variant variant = best.variant;
      variant[knob] = value;
      if (variant[Knob::pp] == 1) variant[Knob::schedule] = variant[Knob::split] = 0;
      if (variant == best.variant || !space.legal(variant)) continue;
      Turn turn{space.text_of(knob, variant)};
      const Workload work = space.workload(variant);
      turn.fits = fits(memory_of(work, stack), machine);
      if (turn.fits)
        turn.faster = best.price.step_seconds / price(work, machine, stack).step_seconds - 1;
      effect.turns.push_back(turn);
    }
    if (!effect.turns.empty()) out.push_back(std::move(effect));
  }
  return out;
}

}  // namespace tessera::planner
