// SPDX-License-Identifier: Apache-2.0
// What is said of a job that a signal has ended.
#pragma once

#include <string>
#include <vector>

#include "tessera/comm/rank_record.hpp"

namespace tessera::app {

/// "rank 1 was ended by signal 9 (killed) after step 17; run the same command to resume (latest
/// checkpoint: step 15)". Empty where all ranks have left in good order and only chose that code.
/// Names no rank where the records leave more than one in question, and no step where no training
/// step has ended.
std::string how_a_rank_was_lost(int signal, const std::vector<comm::RankRecord>& records);

}  // namespace tessera::app
