// SPDX-License-Identifier: Apache-2.0
#include "fallback.hpp"

#include <ATen/core/functional.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <optional>

#include "captured_results.hpp"
#include "host_twins.hpp"
#include "operator_facts.hpp"
#include "operator_task.hpp"

namespace tessera::sim {
namespace {

/// A call of an operator, and its arguments as the CPU kernel gets them.
class Call {
 public:
  Call(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
      : op_(op), schema_(op.schema()) {
    task_.name = c10::toString(schema_.operator_name());
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(schema_.arguments().size());
    for (std::size_t i = 0; i < schema_.arguments().size(); ++i)
      arguments_.push_back(
          twin_of(first[static_cast<std::ptrdiff_t>(i)], writes(schema_.arguments()[i])));
    task_.device = device_.index();
  }

  /// The results, for the stack.
  torch::jit::Stack run() {
    if (is_capturing()) expect_capturable();
    if (can_wait()) return queue();
    if (!is_capturing()) return run_at_once();
    return grown_.empty() ? capture() : capture_growing();
  }

 private:
  static bool writes(const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  }

  void expect_capturable() const {
    const bool random = op_.hasTag(at::Tag::nondeterministic_seeded),
               packs = packs_in_pinned_memory(schema_.name());
    TORCH_CHECK(!random, task_.name, ": operation not permitted when stream is capturing");
    if (packs || host_waits()) refuse_in_capture(task_);
  }

  /// Whether all results are arguments, of shapes that do not change.
  bool can_wait() const {
    for (const at::Tag tag : {at::Tag::dynamic_output_shape, at::Tag::data_dependent_output,
                              at::Tag::nondeterministic_seeded})
      if (op_.hasTag(tag)) return false;
    return operators_wait() && !makes_tensors_ && grown_.empty() &&
           std::all_of(schema_.returns().begin(), schema_.returns().end(), &Call::writes);
  }

  c10::IValue twin_of(const c10::IValue& value, bool written) {
    if (value.isTensor()) return twin_of(value.toTensor(), written);
    if (value.isTensorList()) {
      c10::List<at::Tensor> twins;
      for (const at::Tensor& tensor : value.toTensorVector())
        twins.push_back(twin_of(tensor, written));
      return twins;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> twins;
      for (const auto& tensor : value.toOptionalTensorVector())
        twins.push_back(tensor.has_value() ? std::optional(twin_of(*tensor, written))
                                           : std::nullopt);
      return twins;
    }
    if (!value.isDevice() || !value.toDevice().is_cuda()) return value;
    makes_tensors_ = true;
    device_ = value.toDevice();
    return at::Device(at::kCPU);
  }

  at::Tensor twin_of(const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) return host_argument(tensor);
    device_ = tensor.device();
    if (written && tensor.numel() == 0) return growing_twin_of(tensor);
    add_accesses(task_.accesses, tensor, written);
    return twins_.of(tensor);
  }

  /// An empty tensor given for out= gets its size from the kernel.
  at::Tensor growing_twin_of(const at::Tensor& tensor) {
    for (const at::Tensor& known : grown_)
      if (known.is_same(tensor)) return twins_.of(tensor);
    twins_.pair(tensor, at::empty(tensor.sizes(), tensor.options().device(at::kCPU)));
    grown_.push_back(tensor);
    return twins_.of(tensor);
  }

  /// A GPU takes scalars by their value at the launch.
  at::Tensor host_argument(const at::Tensor& tensor) const {
    TORCH_CHECK(tensor.dim() == 0 || takes_host_indices(schema_.name()),
                "Expected all tensors to be on the same device, but found at least two devices, "
                "cuda and cpu! (in ",
                task_.name, ")");
    if (!operators_wait()) return tensor;
    at::Tensor copy = tensor.clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    return copy;
  }

  /// LibTorch's boxing may return references to arguments that it has dropped, so they stay alive
  /// over the call.
  static torch::jit::Stack call(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
    torch::jit::Stack stack = arguments;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    return stack;
  }

  torch::jit::Stack queue() {
    task_.work = [op = op_, arguments = arguments_] { call(op, arguments); };
    queue_operator(task_);
    torch::jit::Stack results;
    for (std::size_t i = 0; i < schema_.returns().size(); ++i)
      results.push_back(device_result(written_argument(i)));
    return results;
  }

  /// The twin that result `i` is: the argument of the same alias set.
  c10::IValue written_argument(std::size_t i) const {
    const auto& set = schema_.returns()[i].alias_info()->beforeSets();
    for (std::size_t k = 0; k < arguments_.size(); ++k) {
      const auto* const alias = schema_.arguments()[k].alias_info();
      if (alias != nullptr && alias->beforeSets() == set) return arguments_[k];
    }
    TORCH_CHECK(false, task_.name, ": a result is none of the arguments");
  }

  /// Fresh results of a graph's task.
  torch::jit::Stack capture() {
    return capture_results(task_, device_, arguments_, stand_ins(),
                           [op = op_](const torch::jit::Stack& twins) { return call(op, twins); });
  }
  /// Repeats are values that shapes follow from, and add up to the size that is given.
  torch::jit::Stack stand_ins() const {
    torch::jit::Stack result = stand_ins_of(arguments_);
    if (!size_is_given()) return result;
    const auto at = [&](const char* name) {
      return result[static_cast<std::size_t>(*schema_.argumentIndexWithName(name))];
    };
    at("repeats").toTensor()[0] = at("output_size").toInt();
    return result;
  }

  /// The same for results that are empty tensors given for out=.
  torch::jit::Stack capture_growing() {
    const torch::jit::Stack example = call(op_, stand_ins());
    std::vector<at::Tensor> computed, targets;
    torch::jit::Stack results;
    for (std::size_t i = 0; i < example.size(); ++i) {
      computed.push_back(written_argument(i).toTensor());
      results.push_back(device_result(computed.back()));
      const at::Tensor& tensor = results.back().toTensor();
      tensor.resize_(example[i].toTensor().sizes());
      targets.push_back(HostTwins().of(tensor));
      add_accesses(task_.accesses, tensor, true);
    }
    task_.work = [op = op_, arguments = arguments_, computed, targets] {
      call(op, arguments);
      for (std::size_t i = 0; i < targets.size(); ++i) targets[i].copy_(computed[i]);
    };
    queue_operator(task_);
    return results;
  }

  torch::jit::Stack run_at_once() {
    torch::jit::Stack host_results;
    task_.work = [&] {
      refuse_repeated_adds(schema_, arguments_);
      host_results = call(op_, arguments_);
    };
    run_operator(task_);
    for (const at::Tensor& tensor : grown_) fill(tensor, twins_.of(tensor));
    torch::jit::Stack results;
    for (const c10::IValue& result : host_results) results.push_back(device_result(result));
    if (host_waits()) wait_for_current_stream(task_.device);
    return results;
  }

  /// For numbers, and for tensors whose shape only the device knew.
  bool host_waits() const {
    return (op_.hasTag(at::Tag::dynamic_output_shape) && !size_is_given()) ||
           op_.hasTag(at::Tag::data_dependent_output) ||
           std::any_of(schema_.returns().begin(), schema_.returns().end(),
                       [](const c10::Argument& result) { return !holds_tensors(*result.type()); });
  }
  /// As repeat_interleave's may be.
  bool size_is_given() const {
    const auto index = schema_.argumentIndexWithName("output_size");
    return index.has_value() && !arguments_[static_cast<std::size_t>(*index)].isNone();
  }
  static bool holds_tensors(const c10::Type& type) {
    return type.kind() == c10::TypeKind::TensorType || type.kind() == c10::TypeKind::ListType;
  }

  void fill(const at::Tensor& tensor, const at::Tensor& values) {
    if (values.sizes() != tensor.sizes()) tensor.resize_(values.sizes());
    if (values.numel() == 0) return;
    OperatorTask task{task_.name, task_.device, {}, [target = HostTwins().of(tensor), &values] {
                        target.copy_(values);
                      }};
    add_accesses(task.accesses, tensor, true);
    run_operator(task);
  }

  at::Tensor device_result(const at::Tensor& result) {
    if (!result.defined()) return result;
    const at::Tensor known = twins_.device_tensor(result);
    return known.defined() ? known : to_device(task_.name, result, device_);
  }
  c10::IValue device_result(const c10::IValue& result) {
    if (result.isTensor()) return device_result(result.toTensor());
    if (!result.isTensorList()) return result;
    return c10::fmap(result.toTensorVector(),
                     [this](const at::Tensor& tensor) { return device_result(tensor); });
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  OperatorTask task_;
  HostTwins twins_;
  torch::jit::Stack arguments_;
  std::vector<at::Tensor> grown_;
  at::Device device_{at::kCUDA, 0};
  bool makes_tensors_ = false;
};

/// `function` runs at each launch.
std::vector<at::Tensor> capture_on_host(OperatorTask task, at::Device device,
                                        const std::vector<at::Tensor>& arguments,
                                        const HostFunction& function) {
  const auto compute = [function](const torch::jit::Stack& twins) {
    std::vector<at::Tensor> inputs;
    for (const c10::IValue& twin : twins) inputs.push_back(twin.toTensor());
    const std::vector<at::Tensor> made = function(inputs);
    return torch::jit::Stack(made.begin(), made.end());
  };
  const torch::jit::Stack twins(arguments.begin(), arguments.end());
  return c10::fmap(capture_results(std::move(task), device, twins, stand_ins_of(twins), compute),
                   [](const c10::IValue& result) { return result.toTensor(); });
}

}  // namespace

void fall_back(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  refuse_inexact_adds(op.schema(), *stack);
  count_work(WorkKind::launch, op.schema().name());
  torch::jit::Stack results = Call(op, *stack).run();
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

at::Tensor to_device(const std::string& name, const at::Tensor& host, at::Device device) {
  if (!host.defined()) return host;
  const at::Tensor result =
      at::empty_strided(host.sizes(), host.strides(), host.options().device(device));
  if (host.numel() == 0) return result;
  OperatorTask task{
      name, device.index(), {}, [target = HostTwins().of(result), &host] { target.copy_(host); }};
  add_accesses(task.accesses, result, true);
  run_operator(task);
  return result;
}

std::vector<at::Tensor> run_on_host(const std::string& name, const std::vector<at::Tensor>& inputs,
                                    const HostFunction& function) {
  count_work(WorkKind::launch, name);
  const at::Device device = inputs.at(0).device();
  HostTwins twins;
  OperatorTask task{name, device.index(), {}, {}};
  std::vector<at::Tensor> arguments, results;
  for (const at::Tensor& input : inputs) {
    add_accesses(task.accesses, input, false);
    arguments.push_back(twins.of(input));
  }
  if (is_capturing()) return capture_on_host(std::move(task), device, arguments, function);
  task.work = [&] { results = function(arguments); };
  run_operator(task);
  for (at::Tensor& result : results) result = to_device(name, result, device);
  return results;
}

}  // namespace tessera::sim
