// A pipeline schedule is data: for each rank of the pipeline its list of actions, from a pure function.
//
// Letters are PyTorch's: F forward, B backward (input and weight gradient together). What crosses a cut is sent right after
// it was computed; receives stand where one global order of all events puts them, so that the lists are free of deadlock even
// when every transfer is a rendezvous and each communicator is a queue.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::parallel {

enum class ActionKind : std::uint8_t { forward, backward, send_forward, recv_forward, send_backward, recv_backward };

/// `stage` is the stage that computes, or, of a transfer, the stage on this rank: send_forward of stage 2 goes to stage 3,
/// recv_forward of stage 3 comes from stage 2, send_backward of stage 3 goes to stage 2.
struct Action {
  ActionKind kind;
  int stage;
  int microbatch;
  bool operator==(const Action&) const = default;
};
using ActionList = std::vector<Action>;

enum class Schedule : std::uint8_t { gpipe, one_f_one_b };

/// Action lists of all pipeline ranks (stage r on rank r), transfers included.
/// GPipe: Huang et al., https://arxiv.org/abs/1811.06965. 1F1B: PipeDream-Flush, https://arxiv.org/abs/2006.09503.
std::vector<ActionList> make_schedule(Schedule schedule, int stages, int microbatches);

/// Only the computations of one rank, in their order.
ActionList compute_order(Schedule schedule, int stages, int rank, int microbatches);

/// Puts transfers into lists of computations. Throws ContractViolation when the lists wait for each other.
std::vector<ActionList> with_transfers(const std::vector<ActionList>& computations);

/// Runs the lists with every transfer a rendezvous. Empty if all of them end, each microbatch passing every stage once forward and
/// once backward in order; else what is wrong, in words: the ranks, their positions and what each waits for.
std::string find_fault(const std::vector<ActionList>& lists, int microbatches);

/// "2F0", "SEND_F 2.0" ...: stage, letter, microbatch.
std::string to_string(const Action& action);

}  // namespace tessera::parallel
