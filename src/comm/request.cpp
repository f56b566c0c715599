// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include "tessera/base/log.hpp"
#include "tessera/comm/communicator.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {

/// Not while an exception is on its way: another rank may wait for this one, which will not come.
Request::~Request() {
  if (std::uncaught_exceptions() > 0 || has_stopped_waiting()) return;
  try {
    wait();
  } catch (const std::exception& error) {
    log::error("a request was dropped and failed: {}", error.what());
  }
}

void Request::wait() {
  if (!state_) return;
  const std::unique_ptr<State> state = std::move(state_);
  state->wait();
}

bool Request::test() { return !state_ || state_->test(); }

}  // namespace tessera::comm
