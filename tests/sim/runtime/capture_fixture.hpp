// SPDX-License-Identifier: Apache-2.0
// What the tests of stream capture share.
#pragma once

#include "sim_test.hpp"

namespace tessera::sim {

/// Captures stream a, and launches.
class Captures : public SimTest {
 protected:
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_OK(cudaStreamBeginCapture(a, mode));
  }
  void end() {
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(a, &graph));
    ASSERT_OK(cudaGraphInstantiate(&graph_, graph, 0));
    ASSERT_OK(cudaGraphDestroy(graph));
  }
  /// The capture ends with an error, and no graph.
  void expect_end(cudaError_t error) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(error, cudaStreamEndCapture(a, &graph));
    EXPECT_EQ(nullptr, graph);
    static_cast<void>(cudaGetLastError());
  }
  cudaError_t launch(cudaStream_t stream) { return cudaGraphLaunch(graph_, stream); }
  cudaError_t say(cudaStream_t stream, char what) {
    return enqueue(stream, std::string(1, what), {}, [this, what] {
      said_ += what;
      return cudaSuccess;
    });
  }
  static void follow(cudaStream_t later, cudaStream_t earlier) {
    const cudaEvent_t event = new_event();
    EXPECT_OK(cudaEventRecord(event, earlier));
    EXPECT_OK(cudaStreamWaitEvent(later, event, 0));
    EXPECT_OK(cudaEventDestroy(event));
  }
  void TearDown() override {
    if (graph_ != nullptr) {
      EXPECT_OK(cudaGraphExecDestroy(graph_));
    }
    SimTest::TearDown();
  }
  std::string said_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace tessera::sim
