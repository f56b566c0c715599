// Signals that end a run in good order. Handlers only set a flag; ranks agree on it with the step's own reduction.
#pragma once

#include <cstdint>

namespace tessera::train {

/// Installs handlers for SIGUSR1, SIGUSR2, SIGTERM and SIGINT while it lives: the first asks for a checkpoint at the next step
/// boundary and a clean end, the second ends the process now.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The first signal that came, 0 if none.
  static int received();
};

}  // namespace tessera::train
