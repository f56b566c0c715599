// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "command.hpp"

int main(int argc, char** argv) {
  const int code = tessera::app::run({argv + 1, argv + argc});
  // A full disk or a closed pipe at standard output must not pass for success.
  if (std::fflush(stdout) != 0 && code == 0) {
    std::perror("tessera: cannot write to standard output");
    return static_cast<int>(tessera::ExitCode::environment);
  }
  return code;
}
