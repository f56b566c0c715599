// Why a rank cannot go on, for those who wait for it.
#pragma once

#include <string>

namespace tessera::comm {

/// Tells the other ranks of this node why this one can go on no more; the first cause counts. Whoever waits for it with
/// compared collectives (set_check_collectives, the strict back end) waits no longer, and says this.
void note_failure(const std::string& cause);
/// It goes on after all: for tests, which fail on purpose again and again.
void forget_failure() noexcept;

}  // namespace tessera::comm
