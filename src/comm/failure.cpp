// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/failure.hpp"

#include <mpi.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <utility>

#include "dropped_transfers.hpp"
#include "peers.hpp"

namespace tessera::comm {
namespace {

std::atomic<bool> stopped{false}, dropped{false};

}  // namespace

void stop_waiting() noexcept { stopped = true; }
bool has_stopped_waiting() noexcept { return stopped; }

void note_dropped_transfers() noexcept { dropped = true; }
bool has_dropped_transfers() noexcept { return dropped; }

std::string failure_on_node() {
  for (const int rank : readable_ranks())
    if (std::string failure = failure_of(rank); !failure.empty()) return failure;
  return {};
}

void end_at_the_latest(std::chrono::seconds patience, int code, std::string why) {
  std::thread([patience, code, why = std::move(why)] {
    std::this_thread::sleep_for(patience);
    if (!why.empty()) std::cerr << "tessera: " + why + "\n";
    int over = 0;
    MPI_Finalized(&over);
    if (!over) MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }).detach();
}

}  // namespace tessera::comm
