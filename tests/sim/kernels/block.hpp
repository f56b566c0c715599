// SPDX-License-Identifier: Apache-2.0
// One block of a kernel on the host: its threads are fibers, its shared memory begins as 0xFF, and
// every load and store is checked (accesses.hpp). Blocks of a launch run one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "accesses.hpp"
#include "async_copies.hpp"
#include "fibers.hpp"

namespace tessera::sim {

/// What the kernel's threads do: body(block, shared memory).
using BlockBody = std::function<void(std::int64_t block, unsigned char* shared)>;

class Block {
 public:
  Block(int threads, std::size_t shared_bytes, KernelAccesses& accesses);

  /// Runs all threads of block number `index`. False when some of them wait for others that never
  /// come; the launch is then over, and accesses() tells.
  bool run(std::int64_t index, const BlockBody& body);

  // Called by a thread of the block.
  void barrier();
  /// Leaves `bits` for the other lanes of `mask` and takes those of the lane `partner` away (its
  /// number XORed).
  std::uint64_t exchange(unsigned mask, std::uint64_t bits, unsigned partner);
  unsigned long long atomic_add(unsigned long long* address, unsigned long long value);
  unsigned atomic_max(unsigned* address, unsigned value);
  unsigned long long atomic_max(unsigned long long* address, unsigned long long value);

  /// Of the thread that runs.
  AsyncCopies& async_copies() { return async_copies_[static_cast<std::size_t>(thread_)]; }

  KernelAccesses& accesses() { return accesses_; }

 private:
  static constexpr int kWarp = 32;

  /// Exchanges of one warp. A lane is never more than one exchange ahead of another, so that two
  /// sets of slots do.
  struct Warp {
    std::uint64_t slots[2][kWarp] = {};
    unsigned arrived = 0;
    unsigned done = 0;
  };

  void begin_turn(int thread);
  template <class Condition>
  void wait_while(const Condition& condition) {
    const int thread = thread_;
    while (condition()) {
      fibers_.pause();
      begin_turn(thread);
    }
  }
  void tell_who_waits();

  int threads_;
  std::vector<unsigned char> shared_;
  KernelAccesses& accesses_;
  Fibers& fibers_;  ///< of this thread, kept from launch to launch
  std::vector<Warp> warps_;
  std::vector<AsyncCopies> async_copies_;
  int thread_ = 0;
  int at_barrier_ = 0, ended_ = 0;
  std::uint64_t barriers_ = 0;
  std::uint64_t progress_ = 0, progress_before_ = 0;
};

/// The block whose thread runs; null outside of a kernel.
inline thread_local __attribute__((tls_model("initial-exec"))) Block* running_block = nullptr;
/// The same. Ends the program outside of a kernel.
Block& this_block();

}  // namespace tessera::sim
