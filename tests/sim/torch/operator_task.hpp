// SPDX-License-Identifier: Apache-2.0
// How an operator's work comes to the device.
#pragma once

#include <c10/core/Device.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {

struct OperatorTask {
  std::string name;             ///< "aten::add.out"
  c10::DeviceIndex device = 0;  ///< its current stream takes the task
  std::vector<Access> accesses;
  std::function<void()> work;  ///< runs below autograd, on one thread, with device memory open
};

/// Whether operators are tasks now, so that their results are not there when a call returns: queued
/// ones, or those of a graph that is captured.
bool operators_wait();
/// Whether the current stream is captured: nothing may run at once.
bool is_capturing();

/// Runs the work before it returns, and throws what it throws. Throws c10::Error for an error of
/// the device.
void run_operator(const OperatorTask& task);

/// Queues the work, which must not own device memory. What it throws becomes the device's sticky
/// error.
void queue_operator(const OperatorTask& task);

/// Throws what LibTorch throws where the host would wait for a stream that is captured. As in CUDA,
/// the capture is lost.
void refuse_in_capture(const OperatorTask& task);

/// The host waits for the current stream, as it does on a GPU for results that are numbers or
/// shapes.
void wait_for_current_stream(c10::DeviceIndex device);

}  // namespace tessera::sim
