// SPDX-License-Identifier: Apache-2.0
#include "operator_task.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>

namespace tessera::sim {
namespace {

cudaStream_t current_stream(c10::DeviceIndex device) {
  return c10::cuda::getCurrentCUDAStream(device).stream();
}

/// One thread: sums are then always split in the same way, and no helper thread touches device
/// memory, which is closed to it.
void call(const std::function<void()>& work) {
  if (at::get_num_threads() != 1) at::set_num_threads(1);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::NoGradGuard no_grad;
  work();
}

}  // namespace

bool is_capturing() { return is_capturing(current_stream(c10::cuda::current_device())); }

bool operators_wait() { return settings().queued_operators || is_capturing(); }

void run_operator(const OperatorTask& task) {
  std::exception_ptr thrown;
  const cudaError_t error = run_at_once(current_stream(task.device), task.name, task.accesses, [&] {
    try {
      call(task.work);
    } catch (...) {
      thrown = std::current_exception();
    }
    return cudaSuccess;
  });
  if (thrown) std::rethrow_exception(thrown);
  C10_CUDA_CHECK(error);
}

void queue_operator(const OperatorTask& task) {
  const Work work = [name = task.name, work = task.work] {
    try {
      call(work);
      return cudaSuccess;
    } catch (const std::exception& error) {
      fail_device(cudaErrorAssert, name + ": " + error.what());
      return cudaErrorAssert;
    }
  };
  C10_CUDA_CHECK(enqueue(current_stream(task.device), task.name, task.accesses, work));
}

void refuse_in_capture(const OperatorTask& task) {
  const cudaError_t error = cudaStreamSynchronize(current_stream(task.device));
  static_cast<void>(cudaGetLastError());
  TORCH_CHECK(error == cudaSuccess, task.name, ": ", cudaGetErrorString(error));
}

void wait_for_current_stream(c10::DeviceIndex device) {
  c10::cuda::stream_synchronize(current_stream(device));
}

}  // namespace tessera::sim
