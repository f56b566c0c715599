// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/roofline.hpp"

#include "cell_parts.hpp"

namespace tessera::planner {
namespace {

/// Adds kernels of the same name.
void merge(std::vector<Kernel>& into, const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) {
    const auto same = std::ranges::find(into, kernel.name, &Kernel::name);
    if (same == into.end()) {
      into.push_back(kernel);
    } else {
      same->flops += kernel.flops;
      same->bytes += kernel.bytes;
      same->seconds += kernel.seconds;
    }
  }
}

}  // namespace

Roofs roofs_of(const Workload& work, const Machine& machine) {
  const Format format = format_of(work.precision);
  return {machine.peak_of(format), machine.ceiling_of(format), stream_rate(machine)};
}

std::vector<Kernel> kernels_of(const Workload& work, const Machine& machine, const Stack& stack) {
  std::vector<Kernel> noted;
  Workload forward = work;
  forward.recompute = Recompute::none;  // or blocks of both kinds are noted
  CellClock clock(forward, machine, stack);
  clock.note_in(&noted);
  const std::int64_t mixtures = work.model.mixture_layers();
  if (mixtures < work.model.layers) clock.block(false);
  if (mixtures > 0) clock.block(true);
  clock.head();
  std::vector<Kernel> out;
  merge(out, noted);
  return out;
}

}  // namespace tessera::planner
