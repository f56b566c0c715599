// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "command.hpp"

namespace {

/// At exit, functions run that are given to atexit() from now on, then streams are flushed. What
/// libraries do when they are unloaded is omitted: LibTorch takes its table of operators apart, for
/// a quarter of the time of a short command. Tools that are loaded into the process, and builds for
/// debugging, may need it.
void end_without_unloading() {
#ifdef NDEBUG
  for (const char* tool :
       {"LD_PRELOAD", "LD_AUDIT", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
    if (std::getenv(tool) != nullptr) return;
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
  // A full disk or a closed pipe at standard output must not pass for success. What a stream could
  // not write before is lost, and its flush now succeeds.
  const bool flushed = std::fflush(stdout) == 0;
  if ((!flushed || std::ferror(stdout) != 0 || !std::cout) && code == 0) {
    std::fprintf(stderr, "tessera: cannot write to standard output%s%s\n", flushed ? "" : ": ",
                 flushed ? "" : std::strerror(errno));
    return static_cast<int>(tessera::ExitCode::environment);
  }
  return code;
}
