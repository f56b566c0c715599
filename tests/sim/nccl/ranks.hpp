// SPDX-License-Identifier: Apache-2.0
// Ranks for tests of the double: threads of one process, each with a device and a stream of its
// own.
#pragma once

#include <gtest/gtest.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

namespace tessera::sim::nccl::test {

/// What the program sets TESSERA_SIM_DEVICES to.
inline constexpr int kDevices = 4;

/// To be freed once no rank runs: cudaFree waits for all devices of the process, so for operations
/// of other ranks that wait for this one.
void discard(void* data);

/// Device memory of this thread's device.
template <class T>
class Array {
 public:
  explicit Array(std::vector<T> values) : count_(values.size()) {
    cudaMalloc(&data_, values.size() * sizeof(T));
    cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    // a copy from pageable memory may be under way on the device when it returns
    cudaStreamSynchronize(nullptr);
  }
  Array(std::size_t count, T value) : Array(std::vector<T>(count, value)) {}
  ~Array() { discard(data_); }
  Array(const Array&) = delete;
  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  std::size_t count_;
  void* data_ = nullptr;
};

/// One rank's end: a communicator of all ranks, and a stream.
struct Rank {
  int rank, size;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  /// Waits for the stream's work.
  void finish() const { EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess); }
};

ncclUniqueId new_id();
/// Joins a communicator, on this thread's device.
ncclComm_t join(const ncclUniqueId& id, int size, int rank, const char* name = "test");
ncclComm_t split(ncclComm_t comm, int color, int key, const char* name);

/// What the communicator's asynchronous error becomes, within 20 s.
ncclResult_t failure_of(ncclComm_t comm);
inline std::string last_error() { return ncclGetLastError(nullptr); }

/// Runs body on `size` threads, which wait for each other at its end; then the communicators are
/// destroyed, or aborted where they have failed.
void on_ranks(int size, const std::function<void(Rank&)>& body);
/// The same without communicators.
void on_devices(int size, const std::function<void(int rank)>& body);

/// Threads of on_ranks() and on_devices() meet here.
void meet();

}  // namespace tessera::sim::nccl::test
