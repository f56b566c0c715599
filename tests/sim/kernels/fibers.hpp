// SPDX-License-Identifier: Apache-2.0
// Threads of one block as fibers: stacks between which one host thread switches where they say so.
// A switch is a dozen instructions on x86-64 and swapcontext(3) elsewhere.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "fiber_switch.hpp"

namespace tessera::sim {

/// Memory for a stack, with a page below that no one may touch: an overflow ends the program where
/// it happens.
class FiberStack {
 public:
  FiberStack();
  FiberStack(const FiberStack&) = delete;
  ~FiberStack();

  void* bottom() const { return memory_; }
  static constexpr std::size_t bytes = std::size_t{64} << 10;

 private:
  void* memory_;
};

class Fibers {
 public:
  Fibers() = default;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Runs entry(i) for i in [0, count), each on a stack of its own, in turns that end with pause().
  /// Returns true when all entries have ended; false, with the rest forgotten where they stand,
  /// once `stuck()` is true after a round.
  template <class Stuck>
  bool run(int count, const std::function<void(int)>& entry, const Stuck& stuck) {
    prepare(count, entry);
    while (left_ > 0) {
      current_ = -1;
      switch_fiber(home_, next());
      if (left_ > 0 && stuck()) return false;
    }
    return true;
  }

  /// Ends the turn of the fiber that runs.
  void pause() {
    FiberContext& paused = fibers_[static_cast<std::size_t>(current_)]->context;
    switch_fiber(paused, next());
  }

 private:
  struct Fiber {
    FiberStack stack;
    FiberContext context;
    bool ended = false;
  };

  static void start(void* self);
  /// Whose turn it is: the next fiber's of this round, or run()'s at its end.
  FiberContext& next() {
    while (++current_ < count_)
      if (Fiber& fiber = *fibers_[static_cast<std::size_t>(current_)]; !fiber.ended)
        return fiber.context;
    return home_;
  }
  void prepare(int count, const std::function<void(int)>& entry);

  std::vector<std::unique_ptr<Fiber>> fibers_;  ///< kept from run to run
  FiberContext home_;
  const std::function<void(int)>* entry_ = nullptr;
  int current_ = -1, count_ = 0, left_ = 0;
};

}  // namespace tessera::sim
