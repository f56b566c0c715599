#include <exception>

#include "tessera/base/log.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

Request::~Request() {
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
