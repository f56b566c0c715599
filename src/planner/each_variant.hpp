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

}  // namespace tessera::planner
