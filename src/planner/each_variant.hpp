// SPDX-License-Identifier: Apache-2.0
// Combinations of the values of some knobs.
#pragma once

#include <span>

#include "tessera/planner/variant_space.hpp"

namespace tessera::planner {

/// Calls use(variant) for each combination of the values of `knobs`, legal or not; the other knobs
/// stay as in `from`.
template <class Use>
void each_variant(const VariantSpace& space, std::span<const Knob> knobs, Variant from,
                  const Use& use) {
  if (knobs.empty()) return use(from);
  for (const int value : space.values(knobs.front())) {
    from[knobs.front()] = value;
    each_variant(space, knobs.subspan(1), from, use);
  }
}

/// Calls use(variant) with every variant that has `count` of `knobs` turned, legal or not; the
/// other knobs stay as in `from`.
template <class Use>
void each_turned(const VariantSpace& space, std::span<const Knob> knobs, int count, Variant from,
                 const Use& use) {
  if (count == 0) return use(from);
  if (static_cast<int>(knobs.size()) < count) return;
  each_turned(space, knobs.subspan(1), count, from, use);
  for (const int value : space.values(knobs.front())) {
    if (value == space.own()[knobs.front()]) continue;
    from[knobs.front()] = value;
    each_turned(space, knobs.subspan(1), count - 1, from, use);
  }
}

}  // namespace tessera::planner
