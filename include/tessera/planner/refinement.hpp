// SPDX-License-Identifier: Apache-2.0
// A machine's file corrected by what a run measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/metrics/prediction.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {

/// What one factor corrects: all rates of matrix products and of attention, the bandwidth of
/// memory, or that of links.
enum class Rate : std::uint8_t { products, memory, links };
inline constexpr std::array<Rate, 3> kEachRate{Rate::products, Rate::memory, Rate::links};
/// "the rate of products", for people.
const char* name_of(Rate rate);

/// Which rate the time of a part of a step follows: of "backward", "waiting in tp"; nothing where
/// no figure of a machine's file is behind it.
std::optional<Rate> rate_of(const std::string& part);

/// A measured rate to that of the file.
struct Correction {
  Rate rate;
  double factor;
};
/// A factor is between 1 / kMostCorrected and kMostCorrected.
inline constexpr double kMostCorrected = 3;

struct Refinement {
  /// The fewest that bring the predicted step within 3 % of the measured one, or the closest, each
  /// more by 1 % of the step at least; none where the file is as close, or none brings it closer.
  std::vector<Correction> corrections;
  Price price;  ///< with them
};

/// Each factor makes the parts that follow its rate take as long as they did.
Refinement refine(const Workload& work, const Machine& machine, const Stack& stack,
                  const metrics::RunFigures& measured);

Machine corrected(const Machine& machine, const std::vector<Correction>& corrections);

/// The text of a machine's file with the corrected numbers, and `notes` as comments at its head.
std::string corrected_file(const std::string& text, const std::vector<Correction>& corrections,
                           const std::vector<std::string>& notes);

}  // namespace tessera::planner
