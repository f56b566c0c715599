// A pipeline schedule is data: for each rank of the pipeline its list of actions, from a pure function.
//
// Letters are PyTorch's: F forward, I gradient of the input, W gradients of the weights, B = I and W together. What
// crosses a cut between ranks is sent right after it was computed; receives stand where one global order of all events
// puts them, so that the lists are free of deadlock even when every transfer is a rendezvous and each communicator is a
// queue. Neighbouring stages on one rank hand over without a transfer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/parallel/stage_map.hpp"

namespace tessera::parallel {

enum class ActionKind : std::uint8_t {
  forward,
  input_gradient,
  weight_gradient,
  backward,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
};

/// Does the action compute (F, I, W, B), or does it move what was computed?
constexpr bool computes(ActionKind kind) { return kind <= ActionKind::backward; }

/// `stage` is the stage that computes, or, of a transfer, the stage on this rank: send_forward of stage 2 goes to stage
/// 3, recv_forward of stage 3 comes from stage 2, send_backward of stage 3 goes to stage 2.
struct Action {
  ActionKind kind;
  int stage;
  int microbatch;
  bool operator==(const Action&) const = default;
};
using ActionList = std::vector<Action>;
using ActionLists = std::vector<ActionList>;  ///< by rank

/// GPipe: https://arxiv.org/abs/1811.06965. 1F1B: PipeDream-Flush, https://arxiv.org/abs/2006.09503. Interleaved 1F1B:
/// https://arxiv.org/abs/2104.04473. Looped BFS: https://arxiv.org/abs/2211.05953. ZB-H1:
/// https://arxiv.org/abs/2401.10241; InterleavedZeroBubble is the same idea over interleaved 1F1B. ZB-V:
/// https://arxiv.org/abs/2405.15362. DualPipeV: half of DeepSeek-V3's DualPipe, https://arxiv.org/abs/2412.19437, cut
/// in half as in https://hackmd.io/@ufotalent/r1lVXsa9Jg.
enum class Schedule : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  looped_bfs,
  zb_h1,
  interleaved_zero_bubble,
  zbv,
  dual_pipe_v,
};
inline constexpr int kSchedules = 8;

/// PyTorch's spelling: "1F1B", "Interleaved1F1B" ...; and ours, ZBH1.
std::string_view name_of(Schedule schedule);
/// By that spelling; nothing for any other.
std::optional<Schedule> schedule_named(std::string_view name);

/// Stages of each rank: one, exactly two (the v-shaped ones), or two and more.
enum class StagesARank : std::uint8_t { one, two, several };
StagesARank stages_a_rank(Schedule schedule);
/// The map that the schedule was made for: v for the v-shaped ones, else loop.
StageMap usual_map(Schedule schedule, int ranks, int stages_a_rank);

/// The computations of all ranks, in their order. Throws Error(usage) for a map that the schedule is not made for,
/// saying which it is. Any number of microbatches goes; the bubble is the published one where these come in whole
/// rounds.
ActionLists compute_orders(Schedule schedule, const StageMap& map, int microbatches);

/// Puts transfers into lists of computations. Throws Error(usage) when the lists wait for each other.
ActionLists with_transfers(const ActionLists& computations, const StageMap& map);

/// Both: what ranks run.
ActionLists make_schedule(Schedule schedule, const StageMap& map, int microbatches);

/// Runs the lists with every transfer a rendezvous, each rank one action at a time. Empty if all of them end, each
/// microbatch passing every stage once forward and once backward (B, or I and then W) on the stage's rank; else what is
/// wrong, in words: the ranks, their positions and what each waits for.
std::string find_fault(const ActionLists& lists, const StageMap& map, int microbatches);

/// The most activations of (stage, microbatch) that the list keeps at a time: from F to B or W.
int peak_activations(const ActionList& list);

/// "2F0", "SEND_F 2.0" ...: stage, letter, microbatch.
std::string to_string(const Action& action);

}  // namespace tessera::parallel
