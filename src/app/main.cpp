// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "command.hpp"

namespace {

/// What is registered from now on to run at exit runs, and nothing else: LibTorch would take its
/// table of operators apart, for a quarter of the time of a short command. Libraries that are
/// preloaded may have registered what they need.
void end_without_unloading() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (std::getenv("LD_PRELOAD") != nullptr || std::getenv("LD_AUDIT") != nullptr) return;
  on_exit(
      [](int code, void*) {
        std::fflush(nullptr);
        _exit(code);
      },
      nullptr);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  end_without_unloading();
  const int code = tessera::app::run({argv + 1, argv + argc});
  // A full disk or a closed pipe at standard output must not pass for success.
  if (std::fflush(stdout) != 0 && code == 0) {
    std::perror("tessera: cannot write to standard output");
    return static_cast<int>(tessera::ExitCode::environment);
  }
  return code;
}
