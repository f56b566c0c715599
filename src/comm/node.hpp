// SPDX-License-Identifier: Apache-2.0
// What the environment says about this node before MPI is there.
#pragma once

namespace tessera::comm {

/// Ranks of this job on this node as the launcher announces them; 0 when it does not say.
int announced_local_ranks();
/// Ranks of this job on all nodes, likewise.
int announced_ranks();
/// Cores that the ranks of this node share; 0 when each rank was bound to cores of its own.
int shared_cores();
/// Do more ranks of this job than cores run on this node? Then a rank that waits takes time from
/// one that computes.
bool oversubscribed();
/// Lets waiting ranks give up their core when there are more of them than cores: without it an
/// all-reduce of 8 ranks on 2 cores takes 25-54 ms instead of 0.1-2.4. A value that the user has
/// set stays.
void yield_when_oversubscribed();

}  // namespace tessera::comm
