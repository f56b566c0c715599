// SPDX-License-Identifier: Apache-2.0
// Runs a rank's action list: computes through its stages, and moves what crosses the cuts.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/metrics/meter.hpp"
#include "tessera/parallel/stages.hpp"
#include "tessera/schedule/action.hpp"

namespace tessera::parallel {

/// Tokens and labels of one microbatch on this rank, [T] int64 each, on the stage's device.
struct Microbatch {
  at::Tensor tokens, labels;
  Documents documents;  ///< of its sequences, whole as on one rank; empty = each is one text
};

/// What the last stage learnt; empty elsewhere.
struct PassResult {
  /// unscaled, [T] a microbatch, in the order of their forwards
  std::vector<at::Tensor> token_losses;
};

class Executor {
 public:
  /// `timer`, if given, is in the phase of forward when a pass begins; backward is charged to its
  /// own phase. All must outlive this.
  Executor(Stages& stages, mesh::DeviceMesh& mesh, metrics::PhaseTimer* timer = nullptr)
      : stages_(stages), down_(mesh.along(mesh::Axis::pp)), up_(mesh.upstream()), timer_(timer) {}

  /// One forward and backward pass over `microbatches` by this rank's list; the gradients are then
  /// in the stages' groups (not yet finished). Microbatch i of the list is number `first` + i of
  /// the step. `scale` divides each loss: 1 / valid tokens.
  PassResult run(const schedule::ActionList& list, std::span<const Microbatch> microbatches,
                 int first, double scale);
  /// A list of forwards without a tape (Stage::evaluate): the token losses of all microbatches.
  PassResult evaluate(const schedule::ActionList& list, std::span<const Microbatch> microbatches);
  /// Forgets what is on its way: see StepEnd.
  void abandon_step();
  /// Number, in its step, of the microbatch that is being worked on. Any thread may ask.
  int current_microbatch() const noexcept { return current_microbatch_; }

 private:
  using Key = std::pair<schedule::StageIndex, schedule::MicrobatchIndex>;
  struct Transfer {  ///< what crosses a cut, on its way; without a request it is there
    model::Flow flow;
    comm::Request request;
  };
  struct Link {  ///< to a stage of another rank
    comm::Communicator& pp;
    schedule::StageIndex stage;
  };
  struct Pass {
    std::span<const Microbatch> microbatches;
    int first;
    double scale;
    bool evaluates;
    PassResult result;
    /// Of the action's microbatch, in the step.
    int number_of(const schedule::Action& action) const {
      return first + action.microbatch.value();
    }
  };
  PassResult run(const schedule::ActionList& list, Pass pass);
  void compute(const schedule::Action& action, Pass& pass);
  void forward(const schedule::Action& action, Pass& pass);
  void pair(const schedule::Action& forward, const schedule::Action& backward, Pass& pass);
  /// Of the last stage.
  std::optional<LossInput> loss_of(const schedule::Action& action, const Pass& pass);
  model::Flow begin_forward(const schedule::Action& action, const Pass& pass);
  void end_forward(const schedule::Action& action, StagePass made, Pass& pass);
  void backward(const schedule::Action& action, const Pass& pass);
  void move(const schedule::Action& action);
  void send(const schedule::Action& action, const Link& link, std::map<Key, model::Flow>& from,
            const std::vector<plan::Crossing>& slots);
  void receive(const schedule::Action& action, const Link& link, std::map<Key, Transfer>& into,
               const std::vector<plan::Crossing>& slots);
  void hand_over(const schedule::Action& made, schedule::StageIndex to, model::Flow flow,
                 std::map<Key, model::Flow>& sent, std::map<Key, Transfer>& local);
  static model::Flow arrived(const schedule::Action& action, std::map<Key, Transfer>& from);

  Stages& stages_;
  comm::Communicator &down_, &up_;  ///< of activations and of gradients
  metrics::PhaseTimer* timer_;
  std::map<Key, model::Flow> outputs_, input_gradients_;  ///< computed here, to be sent
  std::map<Key, Transfer> inputs_, output_gradients_;     ///< here or on their way in
  std::list<Transfer> outgoing_;
  std::atomic<int> current_microbatch_ = 0;
};

}  // namespace tessera::parallel
