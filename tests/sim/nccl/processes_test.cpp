// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of their own. This process itself uses no device: its children would
// inherit none.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <vector>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

/// What parent and children share: the id, and how many children have come to a point.
struct Shared {
  ncclUniqueId id;
  std::atomic<int> ready, passed;
};

class SimProcesses : public testing::Test {
 protected:
  void SetUp() override {
    shared_ = new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) Shared{};
  }
  void TearDown() override { munmap(shared_, sizeof(Shared)); }

  pid_t start(int rank, const std::function<void(int)>& body) const {
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(100);
    cudaSetDevice(rank);
    body(rank);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  void start_all(int size, const std::function<void(int)>& body) {
    for (int r = 0; r < size; ++r) children_.push_back(start(r, body));
  }
  void expect_end(std::size_t child, int status) const {
    int ended = 0;
    EXPECT_EQ(waitpid(children_[child], &ended, 0), children_[child]);
    EXPECT_EQ(WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended), status);
  }
  /// Rank 0 makes the id for all.
  ncclComm_t join_all(int size, int rank) {
    if (rank == 0) shared_->id = new_id();
    if (rank == 0) shared_->ready = 1;
    while (shared_->ready == 0) usleep(1000);
    return join(shared_->id, size, rank);
  }
  void meet_all(int size) {
    const int before = shared_->passed++;
    while (shared_->passed < (before / size + 1) * size) usleep(1000);
  }

  Shared* shared_ = nullptr;
  std::vector<pid_t> children_;
};

TEST_F(SimProcesses, CommunicateAndSplit) {
  start_all(4, [this](int rank) {
    ncclComm_t all = join_all(4, rank), pair = split(all, rank / 2, rank, "pair");
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    {
      Array<int> x(1000, rank), sum(1000, -1), other(1000, -1);
      ncclAllReduce(x.data(), sum.data(), 1000, ncclInt, ncclSum, all, stream);
      ncclGroupStart();
      ncclSend(x.data(), 1000, ncclInt, 1 - rank % 2, pair, stream);
      ncclRecv(other.data(), 1000, ncclInt, 1 - rank % 2, pair, stream);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(sum.values(), std::vector<int>(1000, 6));
      EXPECT_EQ(other.values(), std::vector<int>(1000, rank % 2 ? rank - 1 : rank + 1));
    }
    EXPECT_EQ(ncclCommDestroy(pair), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(all), ncclSuccess);
  });
  for (std::size_t r = 0; r < 4; ++r) expect_end(r, 0);
}

/// The process that made the id is gone: an error, and no wait.
TEST_F(SimProcesses, NeedTheOneThatMadeTheId) {
  children_ = {start(0, [this](int) { shared_->id = new_id(); })};
  expect_end(0, 0);
  children_ = {start(0, [this](int) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, shared_->id, 0), ncclSystemError);
    EXPECT_NE(last_error().find("has ended"), std::string::npos) << last_error();
  })};
  expect_end(0, 0);
}

/// A peer that dies is waited for until the communicator is aborted: NCCL leaves it to a watchdog.
/// Its memory stays readable as long as someone maps it.
TEST_F(SimProcesses, WaitForADeadPeerUntilTheyAbort) {
  start_all(2, [this](int rank) {
    ncclComm_t comm = join_all(2, rank);
    meet_all(2);
    if (rank == 1) raise(SIGKILL);
    Array<float> x(10, 1.0f);
    EXPECT_EQ(ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, comm, nullptr),
              ncclSuccess);
    usleep(300'000);
    EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  });
  expect_end(1, -SIGKILL);
  expect_end(0, 0);
}

/// A process may end while an operation waits: nothing holds it.
TEST_F(SimProcesses, EndWithAnOperationUnderWay) {
  children_ = {fork()};
  if (children_[0] == 0) {
    alarm(100);
    ncclComm_t comm = join(new_id(), 1, 0);
    void* x = nullptr;
    cudaMalloc(&x, 40);
    ncclSend(x, 10, ncclFloat, 0, comm, nullptr);
    std::exit(0);
  }
  expect_end(0, 0);
}

}  // namespace
}  // namespace tessera::sim::nccl::test
