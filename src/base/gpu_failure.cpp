// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/gpu_failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace tessera {
namespace {

constexpr std::size_t kLaunches = 8;
std::array<std::atomic<const char*>, kLaunches> launches;
std::atomic<std::size_t> launched{0};

/// cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorContained,
/// cudaErrorTensorMemoryLeak, and cudaErrorUnknown, as of a GPU that has left the bus.
constexpr std::array kSingle{214, 220, 226, 721, 999};
/// cudaErrorIllegalAddress to cudaErrorLaunchFailure.
constexpr int kFirst = 700, kLast = 719;

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
  return std::ranges::find(kSingle, code) != kSingle.end() || (code >= kFirst && code <= kLast);
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
        "invalid program counter", "hardware stack error", "NVLink error", "peer GPU memory",
        "address space", "tensor memory"})
    if (said.find(words) != said.npos) return gpu_failure(said, "LibTorch");
  return {};
}

}  // namespace tessera
