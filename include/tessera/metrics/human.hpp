// SPDX-License-Identifier: Apache-2.0
// Quantities as people read them. Three significant digits; a value that is not finite reads "-".
#pragma once

#include <cstdint>
#include <string>

namespace tessera::metrics {

std::string human_bytes(std::int64_t bytes);  ///< 512 B, 1.23 GiB
/// 999, 45.6k, 8.03B (billion, as model sizes are written), 1.20T
std::string human_count(double count);
std::string human_flops(double flops);       ///< per second: 989 TFLOP/s
std::string human_duration(double seconds);  ///< 0.35s, 8.2s, 41s, 3m05s, 2h03m, 4d02h

}  // namespace tessera::metrics
