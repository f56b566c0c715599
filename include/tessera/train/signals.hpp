// SPDX-License-Identifier: Apache-2.0
// Signals that end a run in good order. Handlers only set a flag; ranks agree on it with the step's
// own reduction.
#pragma once

#include <cstdint>

namespace tessera::train {

/// Handles SIGUSR1, SIGUSR2, SIGTERM and SIGINT while it lives: the first asks for a checkpoint at
/// the next step boundary and a clean end, a second one ends the process now. What comes within a
/// second of the first is ignored: `timeout` and Slurm signal a process and its group. One inside
/// another changes nothing. Made and destroyed on one thread, before threads that compute start: a
/// thread of its own takes the signals, and threads that start later block them.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The first signal that came, 0 if none.
  static int received();
  /// Printed on standard error at the first signal, by the handler; null: nothing. `text` must have
  /// static lifetime.
  static void answer_with(const char* text);
  /// All is safe, and the process is to leave with `code`: a second signal no longer changes that.
  static void decide(int code);
};

}  // namespace tessera::train
