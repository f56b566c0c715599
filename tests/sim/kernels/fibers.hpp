// Threads of one block as fibers: stacks between which one host thread switches where they say so. A switch is a dozen
// instructions on x86-64 and swapcontext(3) elsewhere.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tessera::sim {

class Fibers {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Runs entry(i) for i in [0, count), each on a stack of its own, in turns that end with pause(). Before each turn
  /// `turn(i)` is called. Returns true when all entries have ended; false, with the rest forgotten where they stand,
  /// once `stuck()` is true after a round.
  bool run(int count, const std::function<void(int)>& entry, const std::function<void(int)>& turn,
           const std::function<bool()>& stuck);

  /// Ends the turn of the fiber that runs.
  void pause();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::sim
