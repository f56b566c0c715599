// SPDX-License-Identifier: Apache-2.0
// Autograd: differentiable operations of our own, and the backward pass. They take the place of
// torch::autograd::Function and torch::autograd::backward, whose headers cost each file that
// includes them 10 s of compile time; operation.cpp includes them once, for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// What one use of an operation keeps for its backward pass.
class Kept {
 public:
  /// Saves inputs, outputs or intermediate tensors. Call it once, in forward. Autograd checks that
  /// nobody has changed them in place since, and releases them after the backward pass.
  virtual void save(std::vector<at::Tensor> tensors) = 0;
  /// The saved tensors, in the order of save(). In backward only.
  virtual std::vector<at::Tensor> saved() const = 0;
  /// Whether the caller needs the gradient of input number `input`. In backward only.
  virtual bool needs_gradient(std::size_t input) const = 0;

 protected:
  ~Kept() = default;
};

/// One differentiable operation. Its members are the arguments that are not tensors; it lives as
/// long as the node of the autograd graph that it belongs to. Autograd is off in both functions.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) = 0;
  /// Takes one gradient for each output and gives one for each input: undefined where the input
  /// needs none.
  virtual std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) = 0;
};

/// Runs the operation on `inputs`, all of them defined, and records it for autograd where an input
/// requires a gradient.
std::vector<at::Tensor> apply_all(std::unique_ptr<Operation> operation,
                                  std::vector<at::Tensor> inputs);

/// The same for an operation with one output.
template <class OneOutput>
at::Tensor apply(OneOutput operation, std::vector<at::Tensor> inputs) {
  return apply_all(std::make_unique<OneOutput>(std::move(operation)), std::move(inputs)).front();
}

/// Adds what operations save on this thread to a list while it lives, for those who manage its
/// memory. Inputs that require no gradient are omitted: tables and counts belong to others. The
/// innermost list gets them.
class SavedTensors {
 public:
  /// Null: nothing is listed.
  explicit SavedTensors(std::vector<at::Tensor>* list);
  ~SavedTensors();
  SavedTensors(const SavedTensors&) = delete;
  SavedTensors& operator=(const SavedTensors&) = delete;

 private:
  std::vector<at::Tensor>* outer_;
};

/// The numbers of operations of one graph that is recorded piece by piece, on whichever thread.
/// Autograd numbers them on each thread apart, and backward takes those of the highest number
/// first.
class OperationNumbers {
 public:
  /// Before a piece: those of this thread are higher than all so far.
  void resume() const;
  /// After a piece.
  void pause();

 private:
  std::uint64_t next_ = 0;
};

/// Runs autograd from `outputs`, whose gradients are `gradients`, and adds to the grad() of every
/// leaf that requires one.
void run_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients);

}  // namespace tessera::kernels
