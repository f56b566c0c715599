// SPDX-License-Identifier: Apache-2.0
// Another way to run a job on the same GPUs, with the same batch: one value for each knob.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::planner {

/// What can be turned. What a rank computes for a microbatch follows from the first ones alone.
enum class Knob : std::uint8_t {
  tp,
  cp,
  ep,
  etp,  ///< 1: experts are cut over the tensor-parallel ranks
  microbatch,
  recompute,
  async_tp,
  once,  ///< 1: tokens go once to each rank of their experts
  precision,
  pp,
  replicate,
  reshard,
  accumulate,
  schedule,
  split,  ///< of the model into stages
};
inline constexpr std::size_t kKnobs = 15;
inline constexpr std::array<Knob, kKnobs> kEachKnob{
    Knob::tp,        Knob::cp,       Knob::ep,         Knob::etp,       Knob::microbatch,
    Knob::recompute, Knob::async_tp, Knob::once,       Knob::precision, Knob::pp,
    Knob::replicate, Knob::reshard,  Knob::accumulate, Knob::schedule,  Knob::split};

/// One element for each knob.
template <class T>
struct PerKnob {
  std::array<T, kKnobs> values{};

  T& operator[](Knob knob) { return values[static_cast<std::size_t>(knob)]; }
  const T& operator[](Knob knob) const { return values[static_cast<std::size_t>(knob)]; }
  bool operator==(const PerKnob&) const = default;
};

/// Degrees, flags, sequences of a microbatch, and numbers of a VariantSpace's lists. 0 of reshard,
/// accumulate, recompute, precision, schedule and split is what the job's keys say.
using Variant = PerKnob<int>;

}  // namespace tessera::planner
