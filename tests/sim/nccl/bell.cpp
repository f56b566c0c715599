// SPDX-License-Identifier: Apache-2.0
#include "bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace tessera::sim::nccl {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

}  // namespace

void Bell::sleep(std::uint32_t heard) {
  const timespec limit{
      0, 100'000'000};  // the net below: a process may have died between change and ring
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  futex(rung_, FUTEX_WAIT, heard, &limit);
  sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

void Bell::ring() {
  rung_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) futex(rung_, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace tessera::sim::nccl
