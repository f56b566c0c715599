// A watchdog that is there before the communicators are, and gone before they go.
#pragma once

#include <optional>

#include "tessera/comm/world.hpp"

namespace tessera::train {

/// Declared after communicators, ends the watchdog before they do: ranks that leave after a failure end theirs one by
/// one, and what a device's communicator says of the others then is no failure of its own.
class Unwatch {
 public:
  explicit Unwatch(std::optional<comm::Watchdog>& watchdog) : watchdog_(watchdog) {}
  ~Unwatch() { watchdog_.reset(); }
  Unwatch(const Unwatch&) = delete;

 private:
  std::optional<comm::Watchdog>& watchdog_;
};

}  // namespace tessera::train
