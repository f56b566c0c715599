// SPDX-License-Identifier: Apache-2.0
// The style sheet of every page: colors for light and dark screens, texts, tables, and the classes
// that charts use.
#pragma once

#include <string_view>

namespace tessera::report {

extern const std::string_view kPageStyle;

/// Series of a chart that have a color of their own: classes c0, c1, ...
inline constexpr int kSeriesColors = 8;

}  // namespace tessera::report
