// SPDX-License-Identifier: Apache-2.0
#include "failed_allocation.hpp"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "tessera/comm/world.hpp"

namespace tessera::train {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// Written under the allocator's lock, which nothing here may take.
struct Followed {
  std::int64_t total = 0;
  std::atomic<std::int64_t> allocated{0}, reserved{0};
  std::atomic<bool> asking{false};           ///< the allocator asks the GPU for memory
  std::atomic<std::int64_t> short_since{0};  ///< and there is too little; 0: not so
  std::mutex mutex;
  std::optional<FailedAllocation> failed;  ///< guarded by the mutex

  void got_it() {
    asking = false;
    short_since = 0;
  }
  FailedAllocation now() const {
    return {total, -1, reserved, allocated, 0, comm::Watchdog::place()};
  }
};

Followed& followed() {
  static auto* const instance = new Followed;
  return *instance;
}

void note(const TraceEntry& entry) {
  Followed& f = followed();
  const auto bytes = static_cast<std::int64_t>(entry.size_);
  switch (entry.action_) {
    case TraceEntry::ALLOC:
      f.got_it();
      f.allocated += bytes;
      break;
    case TraceEntry::FREE_COMPLETED:
      f.allocated -= bytes;
      break;
    case TraceEntry::SEGMENT_ALLOC:
    case TraceEntry::SEGMENT_MAP:
      f.got_it();
      f.reserved += bytes;
      break;
    case TraceEntry::SEGMENT_FREE:
    case TraceEntry::SEGMENT_UNMAP:
      f.reserved -= bytes;
      if (f.asking) f.short_since = now_ns();
      break;
    case TraceEntry::OOM: {
      f.got_it();
      const std::lock_guard lock(f.mutex);
      f.failed = f.now();
      f.failed->wanted = bytes;
      f.failed->free = static_cast<std::int64_t>(entry.addr_);
      break;
    }
    default:
      break;
  }
}

/// Called before the allocator asks the GPU for memory, and gives unused memory back if there is
/// too little. With expandable segments it waits for the GPU before any event says so. A call that
/// only takes long is none of this: it may wait for a rank that comes late.
class Asking final : public c10::FreeMemoryCallback {
 public:
  bool Execute() override {
    Followed& f = followed();
    std::size_t free = 0, total = 0;
    f.asking = true;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess && free < total / kShort)
      f.short_since = now_ns();
    return false;
  }

 private:
  static constexpr std::size_t kShort = 16;
};

}  // namespace

void follow_device_memory() {
  Followed& f = followed();
  if (f.total > 0) return;
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return;
  f.total = static_cast<std::int64_t>(total);
  at::globalContext().lazyInitDevice(c10::kCUDA);
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(&note);
  c10::FreeCudaMemoryCallbacksRegistry()->Register(
      "tessera", [] { return std::unique_ptr<c10::FreeMemoryCallback>(new Asking); });
}

std::optional<FailedAllocation> failed_allocation() {
  const std::lock_guard lock(followed().mutex);
  return followed().failed;
}

std::optional<FailedAllocation> held_allocation(std::chrono::seconds for_so_long) {
  const std::int64_t since = followed().short_since;
  if (since == 0 || now_ns() - since < std::chrono::nanoseconds(for_so_long).count())
    return std::nullopt;
  return followed().now();
}

}  // namespace tessera::train
