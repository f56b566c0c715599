// SPDX-License-Identifier: Apache-2.0
// The call pages of the other ranks of this node: what they do can be read even while they are
// stuck.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "call_log.hpp"

namespace tessera::comm {

/// Collective over `node` (the ranks that share memory). Moves this process's page into memory that
/// all of them map. The file under /dev/shm has lost its name before this returns, so nothing is
/// left over however the job ends; where the memory cannot be had, every rank keeps its page to
/// itself.
void share_call_pages(MPI_Comm node, int world_rank);

/// Collective over `world`: tells all ranks when rank 0 was here.
void agree_on_start(MPI_Comm world);
/// That time in seconds since 1970; 0 before it is agreed on. No two starts of a job have the same.
double job_start();

/// World ranks whose pages this process can read, itself included.
std::vector<int> readable_ranks();
/// The page of a world rank; null when it runs on another node.
const CallPage* page_of(int world_rank);

/// What a rank of MPI_COMM_WORLD does now, as text: "blocked in ...", "last call ...", "on another
/// node", "has failed", "has not run for ...".
std::string activity_of(int world_rank);
/// The same, and where it waits for another rank in vain (`await`), what that one does, and so on
/// to the one that all wait for: "rank 3 blocked in ..., for rank 5; rank 5 not in a call; ...". A
/// rank that does not run waits for nobody.
std::string chain_from(int world_rank);
/// What a rank said about its failure (failure.hpp); empty when it has not failed or cannot be
/// read.
std::string failure_of(int world_rank);
/// note_failure() of a rank that fails because another one has, with what that one said.
void pass_failure_on(const std::string& failure);
/// Tells the other ranks of the node that this one has been waiting for that one for too long; -1 =
/// it is not.
void await(int world_rank) noexcept;

/// The world ranks of the members of `comm`.
Members members_of(MPI_Comm comm);
/// The world rank of member `rank` of `comm`.
int world_rank_of(MPI_Comm comm, int rank);

}  // namespace tessera::comm
