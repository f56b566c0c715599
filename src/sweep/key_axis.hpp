// SPDX-License-Identifier: Apache-2.0
// A key that a sweep varies, as the axis of a chart.
#pragma once

#include <string>
#include <vector>

#include "tessera/report/chart.hpp"
#include "tessera/sweep/results.hpp"

namespace tessera::sweep {

/// Numbers where all of its values are numbers, else labels, counted from 0.
struct KeyAxis {
  report::Dimension dimension;
  std::vector<double> values;  ///< of each point of the results; NaN: the point has none
};
KeyAxis axis_of(const Results& results, const std::string& key);

/// The values of an axis in few groups: each by itself, or, of many numbers, eight ranges.
struct Groups {
  std::vector<std::string> labels;
  std::vector<int> of_point;  ///< -1: none
};
Groups groups_of(const KeyAxis& axis);

}  // namespace tessera::sweep
