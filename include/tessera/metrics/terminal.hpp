// SPDX-License-Identifier: Apache-2.0
// What the other end of a stream can show.
#pragma once

namespace tessera::metrics {

struct Terminal {
  /// a screen whose last line can be drawn again; never true of a file or a pipe
  bool interactive = false;
  bool color = false;
  bool unicode = false;  ///< the locale has UTF-8
  int columns = 80;
};

/// Of an open file descriptor. Color only if `color_wanted`, on a screen, with TERM other than
/// "dumb" and NO_COLOR not set.
Terminal terminal_of(int descriptor, bool color_wanted);

}  // namespace tessera::metrics
