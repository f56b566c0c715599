// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule is data: for each rank of the pipeline its list of actions, from a pure
// function.
//
// What crosses a cut between ranks is sent right after it was computed. Receives are where one
// global order of all events puts them, if transfers take a little time: before the computation
// during which they arrive. The lists are therefore free of deadlock, even if every
// transfer is a rendezvous and each communicator is a queue. Neighbouring stages on one rank hand
// over without a transfer.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/schedule/action.hpp"
#include "tessera/schedule/stage_map.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::schedule {

/// What becomes of F and B that a schedule is made to run together.
enum class Pairs : std::uint8_t {
  apart,     ///< one after the other
  together,  ///< as Action::overlaps_next
};

/// The computations of all ranks, in their order; DualPipeV has pairs. Throws Error(usage) for a
/// map that the schedule is not made for, saying which it is. Any number of microbatches goes; the
/// bubble is the published one where these come in whole rounds.
ActionLists compute_orders(Kind schedule, const StageMap& map, int microbatches,
                           Pairs pairs = Pairs::apart);

/// The same lists with each pair one after the other.
ActionLists with_pairs_apart(ActionLists lists);

/// Puts transfers into lists of computations. Throws Error(usage) when the lists wait for each
/// other.
ActionLists with_transfers(const ActionLists& computations, const StageMap& map);

/// Both: what ranks run.
ActionLists make_schedule(Kind schedule, const StageMap& map, int microbatches);

/// Runs the lists with every transfer a rendezvous, each rank one action or pair at a time. Empty
/// if all of them end, each microbatch passing every stage once forward and once backward (B, or I
/// and then W) on the stage's rank; else what is wrong: the ranks, their positions and what each
/// waits for.
std::string find_fault(const ActionLists& lists, const StageMap& map, int microbatches);

}  // namespace tessera::schedule
