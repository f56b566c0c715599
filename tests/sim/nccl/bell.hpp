// SPDX-License-Identifier: Apache-2.0
// How a thread sleeps until another process has changed something in shared memory: an event count
// on a futex(2).
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera::sim::nccl {

/// All zeros is a bell that has not rung, so a fresh mapping needs no initialisation. Whoever waits
/// reads `heard`, looks at what it waits for, and sleeps only if the bell has not rung since; so no
/// change is missed.
class Bell {
 public:
  std::uint32_t heard() const { return rung_.load(std::memory_order_seq_cst); }
  /// Returns after a ring that follows `heard`, after 100 ms, or at times for no reason.
  void sleep(std::uint32_t heard);
  /// Wakes all sleepers of all processes.
  void ring();

 private:
  std::atomic<std::uint32_t> rung_, sleeping_;
};

}  // namespace tessera::sim::nccl
