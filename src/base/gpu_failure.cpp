// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/gpu_failure.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace tessera {
namespace {

constexpr std::size_t kLaunches = 8;
std::array<std::atomic<const char*>, kLaunches> launches;
std::atomic<std::size_t> launched{0};

/// cudaErrorECCUncorrectable; cudaErrorIllegalAddress to cudaErrorLaunchFailure; cudaErrorUnknown,
/// as of a GPU that has left the bus.
constexpr int kEcc = 214, kFirst = 700, kLast = 719, kUnknown = 999;

}  // namespace

void note_launch(const char* kernel) noexcept {
  launches[launched.fetch_add(1, std::memory_order_relaxed) % kLaunches].store(
      kernel, std::memory_order_relaxed);
}

std::string last_launches() {
  std::string text;
  const std::size_t all = launched;
  for (std::size_t i = all > kLaunches ? all - kLaunches : 0; i < all; ++i)
    if (const char* kernel = launches[i % kLaunches])
      text += (text.empty() ? "" : ", ") + std::string(kernel);
  return text;
}

bool is_gpu_failure(int code) noexcept {
  return code == kEcc || (code >= kFirst && code <= kLast) || code == kUnknown;
}

std::string gpu_failure(std::string_view error, std::string_view seen_by) {
  const std::string launched_last = last_launches();
  return fmt::format(
      "earlier work on this GPU failed: {} (seen by {}){}; look for \"Xid\" in `dmesg` of this "
      "node, and run with "
      "CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to learn which",
      error, seen_by,
      launched_last.empty() ? ""
                            : "; the last kernels that this rank launched were " + launched_last);
}

std::string gpu_failure(const std::exception& error) {
  constexpr std::string_view before = "CUDA error: ";
  const std::string_view text = error.what();
  const std::size_t begin = text.find(before);
  if (begin == text.npos) return {};
  const std::string_view said =
      text.substr(begin + before.size(), text.find('\n', begin) - begin - before.size());
  for (const std::string_view words :
       {"illegal memory access", "unspecified launch failure", "ECC error", "assert",
        "misaligned address", "launch timed out", "unknown error", "illegal instruction",
        "invalid program counter", "hardware stack error"})
    if (said.find(words) != said.npos) return gpu_failure(said, "LibTorch");
  return {};
}

}  // namespace tessera
