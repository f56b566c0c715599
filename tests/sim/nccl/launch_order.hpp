// SPDX-License-Identifier: Apache-2.0
// Whether two ranks launch the communicators that they share in the same order.
//
// Operations of one rank may hold each other up on the device, so two ranks that launch them in
// different orders can wait for each other for ever; NCCL asks for one global order and checks
// nothing. Here every rank numbers, for each other rank, the operations that both take part in,
// over all communicators: collectives of a communicator with both as members, and transfers between
// the two. Where two ranks meet on an operation, each of them has its number of it. If they launch
// in the same order the numbers agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operation.hpp"

namespace tessera::sim::nccl {

/// Gives every operation of one launch its positions, by rank of its communicator. Operations that
/// are launched together have no order: each of them stands anywhere between the first and the
/// last. Called under the launch lock.
void number(std::vector<Operation>& launched);

/// This rank has dropped operations of the communicator, and its members may have launched them or
/// not: nothing is known about its order with any of them, until it joins a communicator with them.
/// Called under the launch lock.
void forget_order(const Communicator& communicator);

/// The members of a new communicator tell each other what they know, and count anew where one of
/// them knows nothing.
void tell_order(const Communicator& communicator, int rank);
void agree_on_order(const Communicator& communicator, int rank);

/// Empty if `a`, as rank `rank_a` says, and `b`, as rank `rank_b` does, can be the same place.
std::string compare(const Position& a, int rank_a, const Position& b, int rank_b);

}  // namespace tessera::sim::nccl
