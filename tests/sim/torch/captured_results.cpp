// SPDX-License-Identifier: Apache-2.0
#include "captured_results.hpp"

#include <ATen/ops/empty_strided.h>

#include <cstring>
#include <utility>

#include "host_twins.hpp"
#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

/// All tensors of a stack, those in lists too, in order.
template <class Visit>
void for_tensors(const torch::jit::Stack& stack, Visit visit) {
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) visit(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  }
}

/// What is given twice is one tensor.
class StandIns {
 public:
  c10::IValue of(const c10::IValue& value) {
    if (value.isTensor()) return of(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(of(tensor));
      return list;
    }
    if (!value.isOptionalTensorList()) return value;
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector())
      list.push_back(tensor.has_value() ? std::optional(of(*tensor)) : std::nullopt);
    return list;
  }

 private:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    for (const auto& [known, zeros] : made_)
      if (known.is_same(tensor)) return zeros;
    const at::Tensor zeros =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
    if (zeros.storage().nbytes() > 0)
      std::memset(zeros.storage().mutable_data(), 0, zeros.storage().nbytes());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      zeros.unsafeGetTensorImpl()->set_wrapped_number(true);
    made_.emplace_back(tensor, zeros);
    return zeros;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> made_;
};

class CapturedResults {
 public:
  /// Device tensors like the tensors in `example`: tensors, lists of them, or other values, which
  /// stay.
  CapturedResults(torch::jit::Stack example, at::Device device);

  /// Host twins of them; undefined for undefined ones.
  const std::vector<at::Tensor>& twins() const { return twins_; }
  void add_accesses(std::vector<Access>& accesses) const;
  torch::jit::Stack take() { return std::move(results_); }

  /// Copies what was computed.
  static void fill(const std::vector<at::Tensor>& twins, const torch::jit::Stack& computed);

 private:
  at::Tensor like(const at::Tensor& example, at::Device device);

  torch::jit::Stack results_;
  std::vector<at::Tensor> tensors_, twins_;
};

CapturedResults::CapturedResults(torch::jit::Stack example, at::Device device) {
  for (c10::IValue& value : example) {
    if (value.isTensor()) {
      results_.emplace_back(like(value.toTensor(), device));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(like(tensor, device));
      results_.emplace_back(list);
    } else {
      results_.push_back(std::move(value));
    }
  }
}

at::Tensor CapturedResults::like(const at::Tensor& example, at::Device device) {
  at::Tensor result;
  if (example.defined())
    result =
        at::empty_strided(example.sizes(), example.strides(), example.options().device(device));
  tensors_.push_back(result);
  twins_.push_back(HostTwins().of(result));
  return result;
}

void CapturedResults::add_accesses(std::vector<Access>& accesses) const {
  for (const at::Tensor& tensor : tensors_) sim::add_accesses(accesses, tensor, true);
}

void CapturedResults::fill(const std::vector<at::Tensor>& twins,
                           const torch::jit::Stack& computed) {
  std::size_t next = 0;
  for_tensors(computed, [&](const at::Tensor& tensor) {
    const at::Tensor& twin = twins.at(next++);
    if (tensor.defined() && tensor.numel() > 0) twin.copy_(tensor);
  });
}

}  // namespace

torch::jit::Stack stand_ins_of(const torch::jit::Stack& arguments) {
  StandIns stand_ins;
  torch::jit::Stack result;
  for (const c10::IValue& argument : arguments) result.push_back(stand_ins.of(argument));
  return result;
}

torch::jit::Stack capture_results(OperatorTask task, at::Device device,
                                  const torch::jit::Stack& arguments,
                                  const torch::jit::Stack& stand_ins, const Compute& compute) {
  CapturedResults results(compute(stand_ins), device);
  task.work = [compute, arguments, twins = results.twins()] {
    CapturedResults::fill(twins, compute(arguments));
  };
  results.add_accesses(task.accesses);
  queue_operator(task);
  return results.take();
}

}  // namespace tessera::sim
