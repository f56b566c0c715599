// SPDX-License-Identifier: Apache-2.0
// The files that come with Tessera: recipes, job scripts, the sample text.
#pragma once

#include <filesystem>

namespace tessera {

/// $TESSERA_SHARE, or else share/tessera next to the folder of the running program, as an absolute
/// path: that of a prefix, or of the build folder of a checkout. Empty when neither exists.
std::filesystem::path share_folder();

}  // namespace tessera
