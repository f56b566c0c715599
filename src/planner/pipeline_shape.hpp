// SPDX-License-Identifier: Apache-2.0
// What the ranks of a pipeline compute, counted in cells: enough for a bound of its time that
// simulates nothing.
#pragma once

#include <array>
#include <vector>

#include "pipeline_time.hpp"

namespace tessera::planner {

/// Cells that take the same time, of one workload.
enum class Part : std::uint8_t { embedding, dense, mixture, predictor, head };
inline constexpr std::array kEachPart{Part::embedding, Part::dense, Part::mixture, Part::predictor,
                                      Part::head};
template <class T>
struct PerPart {
  std::array<T, kEachPart.size()> values{};

  T& operator[](Part part) { return values[static_cast<std::size_t>(part)]; }
  const T& operator[](Part part) const { return values[static_cast<std::size_t>(part)]; }
};

struct RankShape {
  PerPart<double> own;     ///< of all its stages
  PerPart<double> before;  ///< of the stages in front of its lowest one
  int lowest = 0;          ///< stage
  int crossings = 0;       ///< from rank to rank on the way to it
  int receives = 0;        ///< stages of its own with one in front, and with one behind
};

/// One for each rank of a pipeline.
std::vector<RankShape> shapes_of(const Pipeline& pipeline);

/// Seconds of one microbatch in a cell. `input` is that of recomputation too.
struct PartSeconds {
  double forward = 0, input = 0, weight = 0;
};

/// A pipeline takes at least so long. Its first microbatch passes all stages in front of a rank,
/// which then computes all microbatches; and the last one passes those stages again. Where the
/// gradients of weights are computed apart, or nobody knows (`splits`), they may fill that time.
double least_seconds(const Pipeline& pipeline, const std::vector<RankShape>& ranks,
                     const PerPart<PartSeconds>& parts, const MessageSeconds& message, bool splits);

}  // namespace tessera::planner
