// SPDX-License-Identifier: Apache-2.0
#include "pinned.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "tessera/base/error.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

constexpr std::size_t kGrain_bytes = 64 * 1024;
constexpr std::size_t kMostKept_bytes = std::size_t{256} << 20;

struct Block {
  std::byte* data = nullptr;
  Event free;
};

/// Blocks without an owner, by size. Sizes are powers of two, so that blocks fit again.
class Pool {
 public:
  Block take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto fit = blocks_.extract(bytes);
    if (!fit) return {};
    bytes_ -= bytes;
    return std::move(fit.mapped());
  }
  /// False: the pool has enough, and the caller keeps the block.
  bool give(const Block& block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes_ + bytes > kMostKept_bytes) return false;
    blocks_.emplace(bytes, block);
    bytes_ += bytes;
    return true;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, Block> blocks_;
  std::size_t bytes_ = 0;
};

Pool& pool() {
  // outlives every request, whatever the order of static destruction
  static auto* instance = new Pool;
  return *instance;
}

std::byte* pin(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t code = cudaMallocHost(&memory, bytes);
  require(code == cudaSuccess, ExitCode::environment,
          "cannot pin {} bytes of host memory for MPI: {}; set TESSERA_STAGING_BYTES to less, or "
          "raise `ulimit -l`",
          bytes, cudaGetErrorString(code));
  return static_cast<std::byte*>(memory);
}

}  // namespace

Pinned::Pinned(std::size_t bytes) {
  if (bytes == 0) return;
  bytes_ = std::bit_ceil(std::max(bytes, kGrain_bytes));
  Block block = pool().take(bytes_);
  data_ = block.data ? block.data : pin(bytes_);
  free_ = std::move(block.free);
}

Pinned::~Pinned() {
  if (!data_ || pool().give({data_, free_}, bytes_)) return;
  if (has_stopped_waiting())
    return;  // CUDA waits for the whole device before it frees pinned memory
  if (free_) cudaEventSynchronize(free_.get());
  cudaFreeHost(data_);
}

}  // namespace tessera::comm
