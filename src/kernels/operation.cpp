// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/operation.hpp"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

thread_local std::vector<at::Tensor>* listed = nullptr;

struct Holder final : torch::CustomClassHolder {
  explicit Holder(std::unique_ptr<Operation> operation) : operation(std::move(operation)) {}
  std::unique_ptr<Operation> operation;
};

class KeptInContext final : public Kept {
 public:
  explicit KeptInContext(AutogradContext& context, at::TensorList inputs = {})
      : context_(context), inputs_(inputs) {}
  void save(std::vector<at::Tensor> tensors) override {
    if (listed)
      for (const at::Tensor& tensor : tensors)
        if (!is_constant(tensor)) listed->push_back(tensor);
    context_.save_for_backward(std::move(tensors));
  }
  std::vector<at::Tensor> saved() const override { return context_.get_saved_variables(); }
  bool needs_gradient(std::size_t input) const override { return context_.needs_input_grad(input); }

 private:
  bool is_constant(const at::Tensor& tensor) const {
    return std::ranges::any_of(inputs_, [&](const at::Tensor& input) {
      return !input.requires_grad() && input.is_alias_of(tensor);
    });
  }

  AutogradContext& context_;
  at::TensorList inputs_;  ///< in forward
};

/// The node keeps the operation as a capsule. The holder is an input of its own, hence one gradient
/// more: an undefined one.
struct Bridge : torch::autograd::Function<Bridge> {
  static tensor_list forward(AutogradContext* context, at::TensorList inputs,
                             const c10::intrusive_ptr<Holder>& holder) {
    context->saved_data["operation"] = c10::IValue::make_capsule(holder);
    KeptInContext kept(*context, inputs);
    return holder->operation->forward(kept, {inputs.data(), inputs.size()});
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<Holder>(context->saved_data["operation"].toCapsule());
    KeptInContext kept(*context);
    tensor_list of_inputs = holder->operation->backward(kept, std::move(gradients));
    of_inputs.emplace_back();
    return of_inputs;
  }
};

}  // namespace

std::vector<at::Tensor> apply_all(std::unique_ptr<Operation> operation,
                                  std::vector<at::Tensor> inputs) {
  return Bridge::apply(at::TensorList(inputs), c10::make_intrusive<Holder>(std::move(operation)));
}

SavedTensors::SavedTensors(std::vector<at::Tensor>* list) : outer_(listed) { listed = list; }
SavedTensors::~SavedTensors() { listed = outer_; }

void OperationNumbers::resume() const {
  while (at::sequence_number::peek() < next_) at::sequence_number::get_and_increment();
}

void OperationNumbers::pause() { next_ = at::sequence_number::peek(); }

void run_backward(const std::vector<at::Tensor>& outputs,
                  const std::vector<at::Tensor>& gradients) {
  torch::autograd::backward(outputs, gradients);
}

}  // namespace tessera::kernels
