// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/base/file.hpp"

namespace tessera::metrics {

/// How failures with files in a run's folder are reported.
inline constexpr FileErrors kRunFiles{ExitCode::environment, "job.dump_folder"};

}  // namespace tessera::metrics
