// SPDX-License-Identifier: Apache-2.0
// Telling trouble with files from everything else that can go wrong.
#pragma once

#include <exception>
#include <string>

namespace tessera {

/// "" if `error` is none of std::filesystem. Else one line that names the file, the reason and what
/// to do.
std::string file_trouble(const std::exception& error);

}  // namespace tessera
