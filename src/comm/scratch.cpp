// SPDX-License-Identifier: Apache-2.0
#include "scratch.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

struct Block {
  std::byte* data;
  std::size_t bytes;
};

/// Free blocks, smallest first. A block serves requests down to half its size, so little is wasted.
class Pool {
 public:
  Block take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto fit =
        std::find_if(free_.begin(), free_.end(), [&](const Block& b) { return b.bytes >= bytes; });
    if (fit == free_.end() || fit->bytes > 2 * bytes) return {};
    const Block block = *fit;
    free_.erase(fit);
    return block;
  }
  void give(Block block) {
    const std::lock_guard lock(mutex_);
    const auto place = std::find_if(free_.begin(), free_.end(),
                                    [&](const Block& b) { return b.bytes >= block.bytes; });
    free_.insert(place, block);
    if (free_.size() <= kMost) return;
    std::free(free_.front().data);
    free_.erase(free_.begin());
  }

 private:
  static constexpr std::size_t kMost = 32;
  std::mutex mutex_;
  std::vector<Block> free_;
};

Pool& pool() {
  // outlives every request, whatever the order of static destruction
  static auto* instance = new Pool;
  return *instance;
}

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  if (bytes == 0) return;
  constexpr std::size_t kGrain = 4096;
  const std::size_t rounded = (bytes + kGrain - 1) / kGrain * kGrain;
  Block block = pool().take(rounded);
  if (!block.data) block = {static_cast<std::byte*>(std::aligned_alloc(64, rounded)), rounded};
  require(block.data != nullptr, ExitCode::environment,
          "no memory for {} bytes of communication scratch; use fewer ranks per node", bytes);
  data_ = block.data;
  bytes_ = block.bytes;
}

Scratch::~Scratch() {
  if (data_) pool().give({data_, bytes_});
}

}  // namespace tessera::comm
