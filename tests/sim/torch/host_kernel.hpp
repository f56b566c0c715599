// SPDX-License-Identifier: Apache-2.0
// A kernel of the host's table on the bytes of device tensors.
#pragma once

#include <functional>
#include <utility>

#include "backend.hpp"
#include "host_twins.hpp"
#include "operator_task.hpp"

namespace tessera::sim {

/// One kernel as a task of the current stream.
class HostKernel {
 public:
  HostKernel(const char* name, const at::Tensor& of) : task_{name, of.device().index(), {}, {}} {}

  at::Tensor reads(const at::Tensor& tensor) { return twin(tensor, false); }
  at::Tensor writes(const at::Tensor& tensor) { return twin(tensor, true); }
  kernels::RowsOf reads(const kernels::RowsOf& r) {
    return {reads(r.tensor), r.rows, r.width, r.stride};
  }
  kernels::RowsOf writes(const kernels::RowsOf& r) {
    return {writes(r.tensor), r.rows, r.width, r.stride};
  }

  /// `work` owns twins only.
  void issue(std::function<void()> work) {
    count_work(WorkKind::launch, task_.name);
    task_.work = std::move(work);
    operators_wait() ? queue_operator(task_) : run_operator(task_);
  }

 private:
  at::Tensor twin(const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    add_accesses(task_.accesses, tensor, written);
    return twins_.of(tensor);
  }

  OperatorTask task_;
  HostTwins twins_;
};

}  // namespace tessera::sim
