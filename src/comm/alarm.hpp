// SPDX-License-Identifier: Apache-2.0
// How a rank that notices a hang reaches the other nodes, whose ranks may have noticed nothing:
// from the watchdogs' threads, by messages of their own, as the main threads are held.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <vector>

namespace tessera::comm {

/// Collective over `world`, a communicator for this alone; `node` is the lowest world rank of this
/// rank's node.
void open_alarm(MPI_Comm world, int node);
/// Before MPI's end; waits for a request that is being answered.
void close_alarm() noexcept;

/// Whether this rank is to leave the traces of its node now: of those that mean the same hang, one
/// is. It then calls end_of_traces().
bool begin_traces() noexcept;
void end_of_traces() noexcept;

/// Leaves traces by `leave`, if a rank of another node has asked for them and no rank of this node
/// has just done it; tells that one.
void answer_alarm(const std::function<void()>& leave);
/// Forgets requests: this process has stood still, and they may be old.
void ignore_alarm();
/// Asks the ranks of all other nodes, and waits until one of each node has answered, or for
/// `deadline`; answers them meanwhile. False if some did not, and if there is no alarm.
bool raise_alarm(const std::function<void()>& leave, std::chrono::milliseconds deadline);

}  // namespace tessera::comm
