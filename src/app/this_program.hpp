// SPDX-License-Identifier: Apache-2.0
// Where this program is installed, for starting it again.
#pragma once

#include <unistd.h>

#include <climits>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::app {

inline std::string this_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  require(length > 0 && length < PATH_MAX, ExitCode::environment,
          "/proc/self/exe cannot be read; mount /proc");
  return {path, static_cast<std::size_t>(length)};
}

}  // namespace tessera::app
