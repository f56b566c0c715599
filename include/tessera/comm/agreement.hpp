// SPDX-License-Identifier: Apache-2.0
// Work of one rank or of each, with one outcome for all.
#pragma once

#include <functional>
#include <string>

#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// Collective: every rank runs `work`, which must not communicate. If any fails, all ranks throw
/// the Error of the lowest rank that failed, with "rank N: " before it if others did not fail. Lack
/// of memory, errors of std::filesystem and other exceptions become Error(environment).
void on_all_ranks(Communicator& control, const std::function<void()>& work);

/// Collective: rank 0 runs `work`, which must not communicate; every rank gets its text, or throws
/// the Error that it threw (as above, without a rank).
std::string on_rank_zero(Communicator& control, const std::function<std::string()>& work);

}  // namespace tessera::comm
