// SPDX-License-Identifier: Apache-2.0
// Calls that are parts of a CUDA graph: each launch runs them again, and the host sees none of
// them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "call_log.hpp"

namespace tessera::comm {

/// Whether what `stream` is given becomes a part of a graph.
bool is_captured(cudaStream_t stream);

/// Those of one communicator.
class CapturedCalls {
 public:
  /// `launched` gets their number when the stream that computes was given their graph.
  explicit CapturedCalls(std::function<void(std::int64_t calls)> launched);
  ~CapturedCalls();
  CapturedCalls(const CapturedCalls&) = delete;
  /// The call has ended for the host.
  void add(LoggedCall& call);

  /// Tells those of all communicators.
  static void note_launch();

 private:
  std::function<void(std::int64_t)> launched_;
  std::int64_t calls_ = 0;
  bool was_launched_ = false;
};

}  // namespace tessera::comm
