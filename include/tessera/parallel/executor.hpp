// Runs a rank's action list: computes through its stage, and moves what crosses the cuts.
#pragma once

#include <torch/torch.h>

#include <list>
#include <map>
#include <span>
#include <vector>

#include "tessera/parallel/schedule.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {

/// Tokens and labels of one microbatch on this rank, [T] int64 each, on the stage's device.
struct Microbatch {
  torch::Tensor tokens, labels;
  Documents documents;  ///< of its sequences, whole as on one rank; empty = each is one text
};

/// What the last stage learnt; empty elsewhere.
struct PassResult {
  double loss = 0;                          ///< sum over microbatches of the scaled losses
  std::vector<torch::Tensor> token_losses;  ///< unscaled, [T] a microbatch, in order
};

class Executor {
 public:
  /// `list`: this rank's actions for `microbatches` microbatches.
  Executor(Stage& stage, comm::Communicator& pp, ActionList list);

  /// One forward and backward pass over all microbatches of the list; the gradients are then in the stage's groups (not
  /// yet finished). Microbatch i of the list is number `first` + i of the step. `scale` divides each loss: 1 / valid
  /// tokens.
  PassResult run(std::span<const Microbatch> microbatches, int first, double scale);

 private:
  struct Transfer {  ///< what crosses a cut, on its way
    model::Flow flow;
    comm::Request request;
  };
  void forward(const Action& action, const Microbatch& data, int number, double scale, PassResult& result);
  void backward(const Action& action, int number);
  void send(int microbatch, int peer, std::map<int, model::Flow>& from, const std::vector<Crossing>& slots);
  void receive(int microbatch, int peer, std::map<int, Transfer>& into, const std::vector<Crossing>& slots);
  static model::Flow arrived(int microbatch, std::map<int, Transfer>& from);

  Stage& stage_;
  comm::Communicator& pp_;
  ActionList list_;
  std::map<int, model::Flow> outputs_, input_gradients_;  ///< computed here, to be sent
  std::map<int, Transfer> inputs_, output_gradients_;     ///< on their way in
  std::list<Transfer> outgoing_;
};

}  // namespace tessera::parallel
