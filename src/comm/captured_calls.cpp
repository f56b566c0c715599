// SPDX-License-Identifier: Apache-2.0
#include "captured_calls.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "compute_stream.hpp"
#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

struct Communicators {
  std::mutex mutex;
  std::set<CapturedCalls*> all;
};
Communicators& communicators() {
  static auto* const instance = new Communicators;  // outlives every communicator
  return *instance;
}

}  // namespace

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

CapturedCalls::CapturedCalls(std::function<void(std::int64_t calls)> launched)
    : launched_(std::move(launched)) {
  const std::lock_guard lock(communicators().mutex);
  communicators().all.insert(this);
}

CapturedCalls::~CapturedCalls() {
  const std::lock_guard lock(communicators().mutex);
  communicators().all.erase(this);
}

/// The first one after a launch is of another graph.
void CapturedCalls::add(LoggedCall& call) {
  if (std::exchange(was_launched_, false)) calls_ = 0;
  ++calls_;
  call.done();
}

void CapturedCalls::note_launch() {
  const std::lock_guard lock(communicators().mutex);
  for (CapturedCalls* each : communicators().all) {
    each->was_launched_ = true;
    if (each->calls_ > 0) each->launched_(each->calls_);
  }
}

void note_graph_launch() { CapturedCalls::note_launch(); }

}  // namespace tessera::comm
