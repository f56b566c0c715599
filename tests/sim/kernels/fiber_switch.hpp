// SPDX-License-Identifier: Apache-2.0
// The switch between two stacks of one thread.
#pragma once

#include <cstddef>
#include <memory>

namespace tessera::sim {

/// Where a fiber stands while it does not run.
struct FiberContext {
  void* stack_pointer = nullptr;
  std::shared_ptr<void> registers;  ///< only where no switch was written for the processor
};

/// A fiber that will call start(argument) on the stack [bottom, bottom + bytes). `start` must not
/// return.
FiberContext new_fiber(void* bottom, std::size_t bytes, void (*start)(void*), void* argument);

/// Goes on where `to` stands, and comes back when something switches to `from`.
void switch_fiber(FiberContext& from, FiberContext& to);

}  // namespace tessera::sim
