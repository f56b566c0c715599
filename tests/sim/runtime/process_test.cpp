// SPDX-License-Identifier: Apache-2.0
// The ends of processes, their children, several devices and delays. Each case runs in a process of
// its own.
#include <sys/wait.h>
#include <unistd.h>

#include "sim_test.hpp"

namespace tessera::sim {
namespace {

class ProcessDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void leave() { std::exit(testing::Test::HasFailure() ? 1 : 0); }

void leave_with_tasks() {
  const cudaStream_t stream = new_stream(), other = new_stream();
  const cudaEvent_t event = new_event();
  static std::vector<int> gone_at_exit(100, 1);
  enqueue(stream, "endless", {}, [] {
    while (!stopping()) std::this_thread::yield();
    return cudaSuccess;
  });
  enqueue(stream, "never begins", {}, []() -> cudaError_t { std::_Exit(gone_at_exit.at(0)); });
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  const cudaStream_t destroyed = new_stream();
  EXPECT_OK(cudaStreamWaitEvent(destroyed, event, 0));
  EXPECT_OK(cudaStreamDestroy(destroyed));
  leave();
}

TEST_F(ProcessDeathTest, EndsWhileTasksWait) {
  EXPECT_EXIT(leave_with_tasks(), testing::ExitedWithCode(0), "");
}

struct UsesTheDeviceAtExit {
  ~UsesTheDeviceAtExit() {
    if (cudaStreamSynchronize(nullptr) != cudaErrorCudartUnloading) std::_Exit(1);
    if (touch(nullptr, "late", {}) != cudaErrorCudartUnloading) std::_Exit(2);
  }
};

void leave_through_a_static_object() {
  static const UsesTheDeviceAtExit object;
  EXPECT_OK(touch(nullptr, "task", {}));
  EXPECT_OK(cudaDeviceSynchronize());
  leave();
}

TEST_F(ProcessDeathTest, RefusesCallsAtItsEnd) {
  EXPECT_EXIT(leave_through_a_static_object(), testing::ExitedWithCode(0), "");
}

std::atomic<bool> running_task_is_done = false;

/// Destroyed after the device was stopped.
struct ExpectsNoTask {
  ~ExpectsNoTask() {
    if (!running_task_is_done) std::_Exit(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a task that begins now shows
  }
};

void leave_while_a_task_runs() {
  static const ExpectsNoTask object;
  std::promise<void> begun;
  enqueue(nullptr, "running", {}, [&] {
    begun.set_value();
    while (!stopping()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    running_task_is_done = true;
    return cudaSuccess;
  });
  enqueue(nullptr, "never begins", {}, []() -> cudaError_t { std::_Exit(2); });
  begun.get_future().wait();
  leave();
}

TEST_F(ProcessDeathTest, EndsAfterTheTaskThatRuns) {
  EXPECT_EXIT(leave_while_a_task_runs(), testing::ExitedWithCode(0), "");
}

void exit_in_a_task() {
  enqueue(nullptr, "exit", {}, []() -> cudaError_t { std::exit(0); });
  cudaDeviceSynchronize();
  for (;;) pause();
}

TEST_F(ProcessDeathTest, MayEndInATask) {
  EXPECT_EXIT(exit_in_a_task(), testing::ExitedWithCode(0), "");
}

void fork_after_use() {
  const cudaStream_t stream = new_stream();
  Gate gate;
  std::byte* const data = new_memory(100);
  enqueue(stream, "gate", {}, gate.work());
  const pid_t child = fork();
  if (child == 0) {
    EXPECT_EQ(cudaErrorInitializationError, cudaStreamSynchronize(stream));
    EXPECT_EQ(cudaErrorInitializationError, cudaMemset(data, 0, 100));
#ifdef __SANITIZE_ADDRESS__
    std::_Exit(testing::Test::HasFailure()
                   ? 1
                   : 0);  // its search for leaks waits for threads that a child has not
#endif
    leave();
  }
  int status = -1;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  gate.open();
  EXPECT_OK(cudaMemset(data, 0, 100));
  EXPECT_OK(cudaDeviceSynchronize());
  leave();
}

TEST_F(ProcessDeathTest, LeavesChildrenWithoutADevice) {
  EXPECT_EXIT(fork_after_use(), testing::ExitedWithCode(0), "");
}

void use_two_devices() {
  setenv("TESSERA_SIM_DEVICES", "2", 1);
  int count = 0, device = -1, can = 1;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT_EQ(2, count);
  EXPECT_OK(cudaSetDevice(1));
  std::thread([&] { EXPECT_OK(cudaGetDevice(&device)); }).join();
  EXPECT_EQ(0, device);
  std::byte* const data = new_memory(100);
  cudaPointerAttributes place{};
  EXPECT_OK(cudaPointerGetAttributes(&place, data));
  EXPECT_EQ(1, place.device);
  EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(0, can);
  EXPECT_EQ(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_OK(block_allocated(data, 100, nullptr));
  std::thread([&] {
    EXPECT_OK(block_freed(data, 100, nullptr));
  }).join();  // on a thread whose device is 0
  EXPECT_OK(block_allocated(data, 100, nullptr));
  const cudaEvent_t event = new_event();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventRecord(event, nullptr));
  std::byte* const other = new_memory(100);
  EXPECT_OK(cudaMemcpyPeerAsync(other, 0, data, 1, 100, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  fail_device(cudaErrorAssert, "device 0 fails");
  EXPECT_EQ(cudaErrorAssert, cudaDeviceSynchronize());
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(cudaDeviceSynchronize());
  leave();
}

TEST_F(ProcessDeathTest, MayHaveSeveralDevices) {
  EXPECT_EXIT(use_two_devices(), testing::ExitedWithCode(0), "");
}

void use_no_device() {
  setenv("TESSERA_SIM_DEVICES", "0", 1);
  int count = 1;
  EXPECT_EQ(cudaErrorNoDevice, cudaGetDeviceCount(&count));
  EXPECT_EQ(0, count);
  void* data = nullptr;
  EXPECT_EQ(cudaErrorNoDevice, cudaMalloc(&data, 1));
  EXPECT_EQ(cudaErrorNoDevice, cudaGetLastError());
  leave();
}

TEST_F(ProcessDeathTest, MayHaveNoDevice) {
  EXPECT_EXIT(use_no_device(), testing::ExitedWithCode(0), "");
}

TEST_F(ProcessDeathTest, RefusesSettingsThatAreNone) {
  EXPECT_EXIT(
      {
        setenv("TESSERA_SIM_DEVICES", "two", 1);
        int count = 0;
        cudaGetDeviceCount(&count);
      },
      testing::ExitedWithCode(3), "TESSERA_SIM_DEVICES is \"two\"; give it a whole number");
}

/// The mean of 200 times of up to 2 ms; without a seed it would be some microseconds.
void measure_delays() {
  setenv("TESSERA_SIM_DELAY_SEED", "7", 1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) EXPECT_OK(touch(nullptr, "task", {}));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
  leave();
}

TEST_F(ProcessDeathTest, MayDelayTasks) {
  EXPECT_EXIT(measure_delays(), testing::ExitedWithCode(0), "");
}

TEST(Device, HasProperties) {
  cudaDeviceProp properties{};
  ASSERT_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT_STREQ("Tessera simulated GPU", properties.name);
  EXPECT_EQ(9, properties.major);
  EXPECT_EQ(32, properties.warpSize);
  EXPECT_EQ(settings().memory_bytes, properties.totalGlobalMem);
  EXPECT_EQ(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 1));
  static_cast<void>(cudaGetLastError());
}

}  // namespace
}  // namespace tessera::sim
