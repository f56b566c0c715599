// SPDX-License-Identifier: Apache-2.0
// What one thread of the host has waited for is known to another one only where they have
// synchronized.
#include <pthread.h>
#include <semaphore.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>

#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t kSharedBytes = 4096;

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

class HostThreads : public SimTest {
 protected:
  void SetUp() override {
    ASSERT_OK(block_allocated(data, kSharedBytes, a));
    ASSERT_OK(cudaStreamSynchronize(a));
    ASSERT_OK(touch(a, "gather", {writes(data, kSharedBytes)}));
  }
  void TearDown() override {
    SimTest::TearDown();
    EXPECT_OK(cudaFree(data));
  }

  /// A second thread waits for stream a and calls give(); then this one calls take() and uses what
  /// a has written. What lets take() come second, and keeps the second thread alive, is no
  /// synchronization to the checker.
  cudaError_t use_after(const std::function<void()>& give, const std::function<void()>& take) {
    std::atomic<bool> given = false, used = false;
    std::thread second([&] {
      cudaStreamSynchronize(a);
      give();
      given = true;
      wait_until(used);
    });
    wait_until(given);
    take();
    const cudaError_t result = touch(b, "mul", {reads(data, kSharedBytes)});
    used = true;
    second.join();
    return result;
  }
  void expect_race(const std::function<cudaError_t()>& use) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaErrorLaunchFailure, use());
    EXPECT_NE(std::string::npos,
              testing::internal::GetCapturedStderr().find("race: mul on stream "));
    forget_races();
  }
  std::byte* data = new_memory(kSharedBytes);
};

void nothing() {}

TEST_F(HostThreads, WaitOfAnotherThreadIsNone) {
  expect_race([&] { return use_after(nothing, nothing); });
}

TEST_F(HostThreads, ReadBackWithoutAWaitWhileAnotherThreadWaited) {
  std::vector<std::byte> host(kSharedBytes);
  testing::internal::CaptureStderr();
  static_cast<void>(use_after(nothing, [&] {
    cudaMemcpyAsync(host.data(), data, kSharedBytes, cudaMemcpyDeviceToHost, b);
  }));
  EXPECT_NE(std::string::npos,
            testing::internal::GetCapturedStderr().find("race: memcpy on stream "));
  forget_races();
}

/// A saver without hold_updates(): its thread waits for the copies, the trainer does not.
TEST_F(HostThreads, UpdateWhileAnotherThreadWaitsForACopy) {
  std::byte* const pinned = new_pinned(kSharedBytes);
  const cudaEvent_t computed = new_event();
  EXPECT_OK(cudaEventRecord(computed, a));
  EXPECT_OK(cudaStreamWaitEvent(b, computed, 0));
  EXPECT_OK(cudaMemcpyAsync(pinned, data, kSharedBytes, cudaMemcpyDeviceToHost, b));
  std::atomic<bool> written = false, updated = false;
  std::thread saver([&] {
    cudaStreamSynchronize(b);
    written = true;
    wait_until(updated);
  });
  wait_until(written);
  expect_race([&] { return touch(a, "mul", {writes(data, kSharedBytes)}); });
  updated = true;
  saver.join();
  EXPECT_OK(cudaEventDestroy(computed));
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(HostThreads, HandOnByTheirEnd) {
  std::thread([&] { cudaStreamSynchronize(a); }).join();
  EXPECT_OK(touch(b, "mul", {reads(data, kSharedBytes)}));
}

TEST_F(HostThreads, HandOnByAFuture) {
  std::async(std::launch::async, [&] { cudaStreamSynchronize(a); }).get();
  EXPECT_OK(touch(b, "mul", {reads(data, kSharedBytes)}));
}

TEST_F(HostThreads, HandOnToThoseTheyCreate) {
  EXPECT_OK(cudaStreamSynchronize(a));
  cudaError_t result = cudaErrorUnknown;
  std::thread([&] { result = touch(b, "mul", {reads(data, kSharedBytes)}); }).join();
  EXPECT_OK(result);
}

TEST_F(HostThreads, HandOnByAMutex) {
  std::mutex mutex;
  const auto meet = [&] { const std::lock_guard lock(mutex); };
  EXPECT_OK(use_after(meet, meet));
}

TEST_F(HostThreads, HandOnByATriedMutex) {
  std::mutex mutex;
  const auto meet = [&] {
    if (mutex.try_lock()) mutex.unlock();
  };
  EXPECT_OK(use_after(meet, meet));
}

TEST_F(HostThreads, DoNotHandOnByTwoMutexes) {
  std::mutex first, second;
  expect_race([&] {
    return use_after([&] { const std::lock_guard lock(first); },
                     [&] { const std::lock_guard lock(second); });
  });
}

TEST_F(HostThreads, DoNotHandOnBeforeTheyWait) {
  std::mutex mutex;
  std::thread([&] { const std::lock_guard lock(mutex); }).join();
  expect_race([&] { return use_after(nothing, [&] { const std::lock_guard lock(mutex); }); });
}

TEST_F(HostThreads, HandOnByASharedMutex) {
  std::shared_mutex mutex;
  EXPECT_OK(use_after([&] { const std::shared_lock lock(mutex); },
                      [&] { const std::unique_lock lock(mutex); }));
}

TEST_F(HostThreads, HandOnByASemaphore) {
  sem_t semaphore;
  ASSERT_EQ(0, sem_init(&semaphore, 0, 0));
  EXPECT_OK(use_after([&] { sem_post(&semaphore); }, [&] { sem_wait(&semaphore); }));
  EXPECT_EQ(0, sem_destroy(&semaphore));
}

TEST_F(HostThreads, HandOnThroughAThird) {
  std::mutex first, second;
  const auto give = [&] { const std::lock_guard lock(first); };
  const auto pass_on = [&] {
    std::thread([&] {
      give();
      const std::lock_guard lock(second);
    }).join();
  };
  EXPECT_OK(use_after(give, [&] {
    pass_on();
    const std::lock_guard lock(second);
  }));
}

/// The waiter lets go of the mutex and has it again without a call of its own.
TEST_F(HostThreads, HandOnByAConditionVariable) {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false, done = false;
  std::thread second([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ready; });
    cudaStreamSynchronize(a);
    done = true;
    changed.notify_all();
    changed.wait(lock, [&] { return !ready; });  // lets go of the mutex
  });
  std::unique_lock lock(mutex);
  ready = true;
  changed.notify_all();
  changed.wait(lock, [&] { return done; });
  EXPECT_OK(touch(b, "mul", {reads(data, kSharedBytes)}));
  ready = false;
  changed.notify_all();
  lock.unlock();
  second.join();
}

TEST_F(HostThreads, HandOnByABarrier) {
  pthread_barrier_t barrier;
  ASSERT_EQ(0, pthread_barrier_init(&barrier, nullptr, 2));
  std::atomic<bool> used = false;
  std::thread second([&] {
    cudaStreamSynchronize(a);
    pthread_barrier_wait(&barrier);
    wait_until(used);
  });
  pthread_barrier_wait(&barrier);
  EXPECT_OK(touch(b, "mul", {reads(data, kSharedBytes)}));
  used = true;
  second.join();
  EXPECT_EQ(0, pthread_barrier_destroy(&barrier));
}

/// As MPI reads what it sends: the thread that calls it must have waited.
TEST_F(HostThreads, ReadPinnedMemoryThatAnotherThreadHasWaitedFor) {
  std::byte* const pinned = new_pinned(kSharedBytes);
  EXPECT_OK(cudaMemcpyAsync(pinned, data, kSharedBytes, cudaMemcpyDeviceToHost, a));
  testing::internal::CaptureStderr();
  static_cast<void>(
      use_after(nothing, [&] { host_accesses("MPI_Isend", reads(pinned, kSharedBytes)); }));
  EXPECT_NE(std::string::npos,
            testing::internal::GetCapturedStderr().find("race: MPI_Isend on the host reads"));
  forget_races();
  std::mutex mutex;
  const auto meet = [&] { const std::lock_guard lock(mutex); };
  EXPECT_OK(use_after(meet, [&] {
    meet();
    host_accesses("MPI_Isend", reads(pinned, kSharedBytes));
  }));
  EXPECT_OK(cudaFreeHost(pinned));
}

/// Threads count references to memory in atomic variables: the last one frees it, whoever has
/// waited.
TEST_F(HostThreads, MayFreeWhatAnotherThreadHasWaitedFor) {
  EXPECT_OK(use_after(nothing, [&] { EXPECT_OK(block_freed(data, kSharedBytes, b)); }));
}

/// New memory at old addresses has no past, whoever knew it.
TEST_F(HostThreads, MayUseWhatAnotherThreadHasFreed) {
  std::atomic<bool> freed = false, used = false;
  std::thread second([&] {
    cudaFree(data);
    freed = true;
    wait_until(used);
  });
  wait_until(freed);
  EXPECT_OK(touch(b, "mul", {writes(data, kSharedBytes)}));
  used = true;
  second.join();
  data = nullptr;
}

}  // namespace
}  // namespace tessera::sim
