// SPDX-License-Identifier: Apache-2.0
// Every load and store of a kernel, checked. The .cu files are compiled with -fsanitize=thread,
// whose calls before each access (__tsan_read4 and the like) lead here instead of into a
// sanitizer's runtime.
//
// Global memory: a kernel may touch the operands of its launch and nothing else, to the byte.
// Shared memory: two accesses of different threads to a word, one of them a write, with no
// __syncthreads between are a race (as in compute-sanitizer's racecheck), whatever the order of the
// threads; an access beside it is an error, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/operand.hpp"

namespace tessera::sim {

using kernels::device::Operand;

class KernelAccesses {
 public:
  KernelAccesses(std::string kernel, std::vector<Operand> operands);

  /// `guard` bytes before and behind belong to no one.
  void shared_memory(std::span<unsigned char> memory, std::size_t guard);
  void begin_block(std::int64_t block) { block_ = block; }
  /// Thread `thread` goes on.
  void begin_turn(int thread) { thread_ = thread; }
  /// All threads have met: accesses from now on are behind those up to now.
  void next_interval() { ++interval_; }

  void access(const void* address, std::size_t bytes, bool writes, bool atomic);

  /// Keeps the first text, with kernel, block and thread in front.
  void report(const std::string& text);
  /// The first fault, or "".
  const std::string& fault() const { return fault_; }

 private:
  /// The last accesses to a word of shared memory. Elements that are smaller count as the word that
  /// they lie in.
  struct Shadow {
    std::uint64_t written = 0, read = 0;  ///< intervals
    std::int32_t writer = -1, reader = -1;
    bool atomic = false;
  };
  static constexpr std::int32_t kSeveral = -2;
  static constexpr std::size_t kWord = 4;  ///< bytes

  void check_shared(const unsigned char* address, std::size_t bytes, bool writes, bool atomic);
  void check_global(const unsigned char* address, std::size_t bytes, bool writes);
  bool races(const Shadow& word, bool writes, bool atomic) const;
  void report_race(std::size_t word, bool writes);
  void remember(Shadow& word, bool writes, bool atomic) const;

  std::string kernel_;
  std::vector<Operand> operands_;
  const unsigned char *device_begin_, *device_end_;
  std::span<unsigned char> shared_;
  std::size_t guard_ = 0;
  std::vector<Shadow> shadows_;
  std::int64_t block_ = 0;
  std::int32_t thread_ = 0;
  std::uint64_t interval_ = 1;
  std::string fault_;
};

/// Whether all of [address, address + bytes) lies in rows of `operand`.
bool covers(const Operand& operand, const void* address, std::size_t bytes);

}  // namespace tessera::sim
