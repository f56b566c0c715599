// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/core_speed.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/metrics/meter.hpp"

namespace tessera::metrics {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kHasChain = true;
#else
constexpr bool kHasChain = false;
#endif

/// Sixteen cycles: the eight products beside the additions take eight of one unit.
void add_sixteen([[maybe_unused]] VectorLoad load, [[maybe_unused]] std::uint64_t& x,
                 [[maybe_unused]] std::uint64_t y) {
#if defined(__x86_64__)
  if (load == VectorLoad::bits_512)
    asm volatile(
        ".rept 2\n\t.irp r, 1, 2, 3, 4\n\tvfmadd231ps %%zmm0, %%zmm0, %%zmm\\r\n\t"
        "add %1, %0\n\tadd %1, %0\n\t.endr\n\t.endr"
        : "+r"(x)
        : "r"(y)
        : "xmm1", "xmm2", "xmm3", "xmm4");
  else if (load == VectorLoad::bits_256)
    asm volatile(
        ".rept 2\n\t.irp r, 1, 2, 3, 4\n\tvfmadd231ps %%ymm0, %%ymm0, %%ymm\\r\n\t"
        "add %1, %0\n\tadd %1, %0\n\t.endr\n\t.endr"
        : "+r"(x)
        : "r"(y)
        : "xmm1", "xmm2", "xmm3", "xmm4");
  else
    asm volatile(".rept 16\n\tadd %1, %0\n\t.endr" : "+r"(x) : "r"(y));
#elif defined(__aarch64__)
  asm volatile(".rept 16\n\tadd %0, %0, %1\n\t.endr" : "+r"(x) : "r"(y));
#endif
}

/// Registers of the products are zero before (other values might be denormal, and slow), and have
/// no upper halves after.
void clear_vectors([[maybe_unused]] VectorLoad load) {
#if defined(__x86_64__)
  if (load != VectorLoad::none)
    asm volatile("vzeroall" ::
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

double additions_a_second(VectorLoad load) {
  constexpr int kRounds = 20'000;
  std::uint64_t x = 1;
  const double begin = monotonic_seconds();
  for (int i = 0; i < kRounds; ++i) add_sixteen(load, x, 3);
  return 16 * kRounds / (monotonic_seconds() - begin);
}

/// Memory in huge pages where the system has them: other pages take longer to get than to copy.
/// Mapped, not allocated, so that the process does not keep it.
class CopiedPages {
 public:
  explicit CopiedPages(std::size_t bytes)
      : bytes_(bytes), from_(mapped(bytes)), to_(mapped(bytes)) {}
  /// By the thread that copies: until then there is no memory.
  void touch() const {
    std::memset(from_.get(), 1, bytes_);
    std::memset(to_.get(), 1, bytes_);
  }
  double bytes_a_second() const {
    const double begin = monotonic_seconds();
    std::memcpy(to_.get(), from_.get(), bytes_);
    return 2 * static_cast<double>(bytes_) / (monotonic_seconds() - begin);
  }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* pages) const { munmap(pages, bytes); }
  };
  using Pages = std::unique_ptr<std::byte, Unmap>;

  static Pages mapped(std::size_t bytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED, ExitCode::environment, "no {} MiB to measure copies with",
            bytes >> 20);
    madvise(pages, bytes, MADV_HUGEPAGE);
    return {static_cast<std::byte*>(pages), Unmap{bytes}};
  }

  std::size_t bytes_;
  Pages from_, to_;
};

int allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace

double core_clock_hz(VectorLoad load) {
  if (!kHasChain) return 0;
  constexpr int kUntilTheClockIsSet = 5, kTrials = 15;
  double most = 0;
  clear_vectors(load);
  for (int trial = 0; trial < kUntilTheClockIsSet + kTrials; ++trial) {
    const double rate = additions_a_second(load);
    // Who shares the core makes trials longer; nothing makes them shorter than the clock does.
    if (trial >= kUntilTheClockIsSet) most = std::max(most, rate);
  }
  clear_vectors(load);
  return most;
}

double copy_rate(int threads) {
  constexpr int kTrials = 3;
  // In whole huge pages; together more than caches hold.
  constexpr std::size_t kTogether = 32 << 20, kLeast = 4 << 20;
  std::vector<double> rates(static_cast<std::size_t>(std::clamp(threads, 1, allowed_processors())));
  const std::size_t bytes = std::max(kLeast, std::bit_floor(kTogether / rates.size()));
  std::vector<CopiedPages> pages;
  for (std::size_t i = 0; i < rates.size(); ++i) pages.emplace_back(bytes);
  std::barrier all(static_cast<std::ptrdiff_t>(rates.size()));
  const auto measure = [&](std::size_t i) {
    Window window(kTrials);
    pages[i].touch();
    all.arrive_and_wait();
    for (int trial = 0; trial < kTrials; ++trial) window.add(pages[i].bytes_a_second());
    rates[i] = window.median();
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < rates.size(); ++i) others.emplace_back(measure, i);
  measure(0);
  others.clear();
  return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
}

}  // namespace tessera::metrics
