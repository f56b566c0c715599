// SPDX-License-Identifier: Apache-2.0
// Bytes that LibTorch's allocators hand out.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace tessera::kernels {

/// Counts what this thread, and autograd for it, allocate and free from its construction to its
/// destruction, on devices of one type.
class Allocations {
 public:
  explicit Allocations(c10::DeviceType on = c10::DeviceType::CPU)
      : counter_(std::make_shared<Counter>(on)) {}

  std::int64_t now() const { return counter_->now; }
  std::int64_t peak() const { return counter_->peak; }

 private:
  struct Counter final : c10::MemoryReportingInfoBase {
    explicit Counter(c10::DeviceType type) : on(type) {}
    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                           c10::Device device) override {
      if (device.type() != on) return;
      now += bytes;
      peak = std::max(peak, now);
    }
    bool memoryProfilingEnabled() const override { return true; }
    c10::DeviceType on;
    std::int64_t now = 0, peak = 0;
  };

  std::shared_ptr<Counter> counter_;
  c10::DebugInfoGuard counting_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace tessera::kernels
