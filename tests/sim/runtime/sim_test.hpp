// SPDX-License-Identifier: Apache-2.0
// What the tests of the simulated CUDA runtime share.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {

#define EXPECT_OK(call) EXPECT_EQ(cudaSuccess, call)
#define ASSERT_OK(call) ASSERT_EQ(cudaSuccess, call)

/// Holds the stream that runs work() until open().
class Gate {
 public:
  Work work() const {
    return [opened = opened_] {
      opened.wait();
      return cudaSuccess;
    };
  }
  void open() { promise_->set_value(); }

 private:
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
  std::shared_future<void> opened_ = promise_->get_future().share();
};

inline cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

inline cudaEvent_t new_event(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  EXPECT_OK(cudaEventCreateWithFlags(&event, flags));
  return event;
}

inline std::byte* new_memory(std::size_t bytes) {
  void* data = nullptr;
  EXPECT_OK(cudaMalloc(&data, bytes));
  return static_cast<std::byte*>(data);
}

inline std::byte* new_pinned(std::size_t bytes) {
  void* data = nullptr;
  EXPECT_OK(cudaMallocHost(&data, bytes));
  return static_cast<std::byte*>(data);
}

inline std::vector<std::byte> bytes_of(const void* data, std::size_t bytes) {
  std::vector<std::byte> copy(bytes);
  EXPECT_OK(cudaMemcpy(copy.data(), data, bytes, cudaMemcpyDeviceToHost));
  return copy;
}

inline Access reads(const void* data, std::size_t bytes) { return {data, bytes, false}; }
inline Access writes(const void* data, std::size_t bytes) { return {data, bytes, true}; }

/// A task that does nothing but say what it touches.
inline cudaError_t touch(cudaStream_t stream, const std::string& what,
                         std::vector<Access> accesses) {
  return enqueue(stream, what, accesses, [] { return cudaSuccess; });
}

/// Streams a and b, and no race left behind by the test.
class SimTest : public testing::Test {
 protected:
  void TearDown() override {
    cudaDeviceSynchronize();
    EXPECT_TRUE(races().empty()) << races().front();
    forget_races();
    EXPECT_OK(cudaDeviceSynchronize());
    static_cast<void>(cudaGetLastError());
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
  }
  cudaStream_t a = new_stream(), b = new_stream();
};

}  // namespace tessera::sim
