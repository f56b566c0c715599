// SPDX-License-Identifier: Apache-2.0
// Bytes that LibTorch's allocator gives out.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace tessera::test {

/// Counts what this thread allocates and frees from its construction to its destruction.
class Allocations {
 public:
  std::int64_t now() const { return counter_->now; }
  std::int64_t peak() const { return counter_->peak; }

 private:
  struct Counter final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                           c10::Device) override {
      now += bytes;
      peak = std::max(peak, now);
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::int64_t now = 0, peak = 0;
  };

  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  c10::DebugInfoGuard counting_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace tessera::test
