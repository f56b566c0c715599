// SPDX-License-Identifier: Apache-2.0
// What a rank of a pipeline does: computations of one stage and microbatch, and transfers between
// neighbouring stages.
//
// Letters are PyTorch's: F forward, I gradient of the input, W gradients of the weights, B = I and
// W together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/indexed_vector.hpp"
#include "tessera/schedule/indexes.hpp"

namespace tessera::schedule {

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

/// B or I: those that give the gradient of the input.
constexpr bool is_backward(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::input_gradient;
}

/// Does an action add (1), free (-1) or leave (0) the activations that its stage keeps?
constexpr int kept_by(ActionKind kind) {
  if (kind == ActionKind::forward) return 1;
  return kind == ActionKind::backward || kind == ActionKind::weight_gradient ? -1 : 0;
}

/// `stage` is the stage that computes, or, of a transfer, the stage on this rank: send_forward of
/// stage 2 goes to stage 3, recv_forward of stage 3 comes from stage 2, send_backward of stage 3
/// goes to stage 2.
struct Action {
  ActionKind kind;
  StageIndex stage;
  MicrobatchIndex microbatch;
  /// Of F: it and the B or I that follows in the list, of another stage, run together: what one
  /// waits for is hidden by what the other computes. PyTorch: OVERLAP_F_B.
  bool overlaps_next = false;
  bool operator==(const Action&) const = default;
};
using ActionList = std::vector<Action>;
using ActionLists = IndexedVector<PipelineRank, ActionList>;

/// The most activations of (stage, microbatch) that the list keeps at a time: from F to B or W.
int peak_activations(const ActionList& list);

/// "2F0", "SEND_F 2.0" ...: stage, letter, microbatch.
std::string to_string(const Action& action);

}  // namespace tessera::schedule
