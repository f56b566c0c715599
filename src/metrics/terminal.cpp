// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tessera::metrics {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

/// The first of the three that is set decides, as POSIX has it.
bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;
    std::ranges::transform(value, value.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return value.find("utf-8") != value.npos || value.find("utf8") != value.npos;
  }
  return false;
}

int columns_of(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Terminal terminal_of(int descriptor, bool color_wanted) {
  const bool interactive = ::isatty(descriptor) == 1 && environment("TERM") != "dumb";
  return {.interactive = interactive,
          .color = interactive && color_wanted && environment("NO_COLOR").empty(),
          .unicode = speaks_utf8(),
          .columns = columns_of(descriptor)};
}

}  // namespace tessera::metrics
