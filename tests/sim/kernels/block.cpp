// SPDX-License-Identifier: Apache-2.0
#include "block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cuda_on_host.hpp"

namespace tessera::sim {
namespace {

Fibers& fibers_of_this_thread() {
  thread_local Fibers fibers;
  return fibers;
}

/// bytes before and behind shared memory in which an access is an error
constexpr std::size_t kGuard = 256;

}  // namespace

Block& this_block() {
  if (running_block == nullptr) {
    std::fputs("simulated GPU: a function of a kernel was called outside of one\n", stderr);
    std::abort();
  }
  return *running_block;
}

Block::Block(int threads, std::size_t shared_bytes, KernelAccesses& accesses)
    : threads_(threads),
      shared_(shared_bytes + 2 * kGuard),
      accesses_(accesses),
      fibers_(fibers_of_this_thread()),
      warps_(static_cast<std::size_t>((threads + kWarp - 1) / kWarp)),
      async_copies_(static_cast<std::size_t>(threads)) {
  accesses_.shared_memory({shared_.data() + kGuard, shared_bytes}, kGuard);
}

void Block::begin_turn(int thread) {
  thread_ = thread;
  threadIdx.x = static_cast<unsigned>(thread);
  accesses_.begin_turn(thread);
}

bool Block::run(std::int64_t index, const BlockBody& body) {
  std::memset(shared_.data(), 0xFF, shared_.size());
  std::fill(warps_.begin(), warps_.end(), Warp{});
  std::fill(async_copies_.begin(), async_copies_.end(), AsyncCopies{});
  at_barrier_ = ended_ = 0;
  accesses_.next_interval();
  blockIdx = {static_cast<unsigned>(index), 0, 0};
  blockDim = {static_cast<unsigned>(threads_), 1, 1};
  running_block = this;
  accesses_.begin_block(index);
  const auto entry = [&](int thread) {
    begin_turn(thread);
    body(index, shared_.data() + kGuard);
    ++ended_;
    ++progress_;
  };
  const auto stuck = [this] { return std::exchange(progress_before_, progress_) == progress_; };
  const bool all_ended = fibers_.run(threads_, entry, stuck);
  running_block = nullptr;
  if (!all_ended) tell_who_waits();
  return all_ended;
}

void Block::tell_who_waits() {
  if (at_barrier_ > 0)
    accesses_.report(fmt::format(
        "{} of {} threads wait in __syncthreads, {} have ended, the others wait for a warp",
        at_barrier_, threads_, ended_));
  else
    accesses_.report(fmt::format(
        "lanes wait in a shuffle whose mask names lanes that never come; {} of {} threads have "
        "ended",
        ended_, threads_));
}

void Block::barrier() {
  ++progress_;
  if (++at_barrier_ == threads_) {
    at_barrier_ = 0;
    ++barriers_;
    accesses_.next_interval();
    return;
  }
  const std::uint64_t before = barriers_;
  wait_while([&] { return barriers_ == before; });
}

std::uint64_t Block::exchange(unsigned mask, std::uint64_t bits, unsigned partner) {
  ++progress_;
  Warp& warp = warps_[static_cast<std::size_t>(thread_ / kWarp)];
  const int lane = thread_ % kWarp, present = std::min(kWarp, threads_ - thread_ / kWarp * kWarp);
  const unsigned before = warp.done;
  std::uint64_t* const slots = warp.slots[before % 2];
  slots[lane] = bits;
  const unsigned expected = present == kWarp ? mask : mask & ((1U << present) - 1);
  if (++warp.arrived ==
      (expected == ~0U ? kWarp : static_cast<unsigned>(std::popcount(expected)))) {
    warp.arrived = 0;
    ++warp.done;
  }
  wait_while([&] { return warp.done == before; });
  return slots[static_cast<unsigned>(lane) ^ partner];
}

unsigned long long Block::atomic_add(unsigned long long* address, unsigned long long value) {
  accesses_.access(address, sizeof *address, true, true);
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

namespace {

template <class V>
V raise(V* address, V value) {
  V before = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (before < value && !__atomic_compare_exchange_n(address, &before, value, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return before;
}

}  // namespace

unsigned Block::atomic_max(unsigned* address, unsigned value) {
  accesses_.access(address, sizeof *address, true, true);
  return raise(address, value);
}

unsigned long long Block::atomic_max(unsigned long long* address, unsigned long long value) {
  accesses_.access(address, sizeof *address, true, true);
  return raise(address, value);
}

}  // namespace tessera::sim
