// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

namespace tessera::sim::nccl::test {
namespace {

/// Rules are broken on the device: the host does not wait for connections before.
const int kSet = setenv("TESSERA_SIM_DEVICES", std::to_string(kDevices).c_str(), 1) |
                 setenv("NCCL_RUNTIME_CONNECT", "0", 1);

std::unique_ptr<std::barrier<>> threads;

std::mutex discarded_mutex;
std::vector<void*> discarded;

void free_discarded() {
  for (void* data : discarded) EXPECT_EQ(cudaFree(data), cudaSuccess);
  discarded.clear();
}

void leave(Rank& rank) {
  if (rank.comm) {
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(rank.comm, &state);
    EXPECT_EQ(state == ncclSuccess ? ncclCommDestroy(rank.comm) : ncclCommAbort(rank.comm),
              ncclSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(rank.stream), cudaSuccess);
}

}  // namespace

void discard(void* data) {
  const std::lock_guard lock(discarded_mutex);
  discarded.push_back(data);
}

ncclUniqueId new_id() {
  ncclUniqueId id{};
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

ncclComm_t join(const ncclUniqueId& id, int size, int rank, const char* name) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = name;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, size, id, rank, &config), ncclSuccess) << last_error();
  return comm;
}

ncclComm_t split(ncclComm_t comm, int color, int key, const char* name) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = name;
  ncclComm_t made = nullptr;
  EXPECT_EQ(ncclCommSplit(comm, color, key, &made, &config), ncclSuccess) << last_error();
  return made;
}

ncclResult_t failure_of(ncclComm_t comm) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && std::chrono::steady_clock::now() < deadline) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

void meet() { threads->arrive_and_wait(); }

void on_devices(int size, const std::function<void(int rank)>& body) {
  threads = std::make_unique<std::barrier<>>(size);
  std::vector<std::thread> ranks;
  for (int r = 0; r < size; ++r)
    ranks.emplace_back([&body, r] {
      EXPECT_EQ(cudaSetDevice(r), cudaSuccess);
      body(r);
    });
  for (std::thread& rank : ranks) rank.join();
  free_discarded();
}

void on_ranks(int size, const std::function<void(Rank&)>& body) {
  const ncclUniqueId id = new_id();
  on_devices(size, [&](int r) {
    Rank rank{r, size, join(id, size, r)};
    EXPECT_EQ(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), cudaSuccess);
    if (rank.comm) body(rank);
    meet();
    leave(rank);
  });
}

}  // namespace tessera::sim::nccl::test
