// SPDX-License-Identifier: Apache-2.0
// The numbers of a line chart under the pointer, shown by the page's style sheet alone.
#pragma once

#include <string>
#include <vector>

#include "chart_frame.hpp"

namespace tessera::report {

/// For at most 60 places of the x axis: a column that shows the values of each series there when
/// the pointer is on it. `classes`: the color of each series; muted ones are not shown.
std::string hover_layer(const LineChart& chart, const std::vector<std::string>& classes,
                        const Axis& x, const Axis& y);

}  // namespace tessera::report
