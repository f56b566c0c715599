// For verbs that run on ranks: every rank leaves the same way, and only one of them says why.
#pragma once

#include <functional>

#include "tessera/comm/communicator.hpp"
#include "tessera/config/resolve.hpp"
#include "verb.hpp"

namespace tessera::app {

/// Rank 0 reads and resolves the command line; the job, or what is wrong with it, is the first broadcast, so that a mistake
/// ends all ranks before any waits for another. Throws Error on rank 0 and Reported, with the same code, on the others.
config::Resolved resolve_on_ranks(comm::Communicator& control, const Args& args);

/// Runs `body`, which must not communicate, on every rank. If it throws Error on some of them, all ranks throw: rank 0 an
/// Error with each distinct message and its first rank, the others Reported; the code is the lowest failing rank's.
void together(comm::Communicator& control, const std::function<void()>& body);

}  // namespace tessera::app
