// SPDX-License-Identifier: Apache-2.0
// Work that one rank does for all, with one outcome for all.
#pragma once

#include <functional>
#include <string>

#include "tessera/comm/communicator.hpp"

namespace tessera::train {

/// Collective: rank 0 runs `work`; every rank gets its text, or the Error that it threw. Want of
/// memory and errors of std::filesystem become Error(environment).
std::string on_rank_zero(comm::Communicator& control, const std::function<std::string()>& work);

/// Collective: every rank runs `work`; if any of them throws an Error, all ranks throw the lowest
/// rank's.
void on_all_ranks(comm::Communicator& control, const std::function<void()>& work);

}  // namespace tessera::train
