// SPDX-License-Identifier: Apache-2.0
// How back ends that run on their own (on a device) let the watchdog look after them.
#pragma once

#include <optional>

#include "tessera/base/error.hpp"

namespace tessera::comm {

/// Looked at on the watchdog's thread, every second or so, between construction and destruction.
class Probe {
 public:
  Probe();
  Probe(const Probe&) = delete;
  virtual ~Probe();
  /// Brings the call log up to date; returns why the communicator, or the device, has failed: once.
  virtual std::optional<Error> look() = 0;

 protected:
  /// To be called first in a derived class's destructor: no look() runs after it.
  void retire() noexcept;
};

/// Looks at all probes; the first failure.
std::optional<Error> look_at_probes();

}  // namespace tessera::comm
