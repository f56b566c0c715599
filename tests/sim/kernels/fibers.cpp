#include "fibers.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fiber_switch.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;

/// Memory for a stack, with a page below that no one may touch: an overflow ends the program where it happens.
class Stack {
 public:
  Stack() {
    memory_ = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED || ::mprotect(memory_, static_cast<std::size_t>(::getpagesize()), PROT_NONE) != 0) {
      std::perror("simulated GPU: no memory for the stack of a kernel's thread");
      std::abort();
    }
  }
  Stack(const Stack&) = delete;
  ~Stack() { ::munmap(memory_, kStackBytes); }

  std::byte* bottom() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_;
};

struct Fiber {
  Stack stack;
  FiberContext context;
  bool ended = false;
};

}  // namespace

struct Fibers::State {
  std::vector<std::unique_ptr<Fiber>> fibers;
  FiberContext home;
  const std::function<void(int)>* entry = nullptr;
  int current = -1;

  static void start(void* self) {
    auto* const state = static_cast<State*>(self);
    const int number = state->current;
    (*state->entry)(number);
    state->fibers[static_cast<std::size_t>(number)]->ended = true;
    switch_fiber(state->fibers[static_cast<std::size_t>(number)]->context, state->home);
    std::abort();  // an ended fiber gets no turn
  }

  void prepare(int count) {
    while (fibers.size() < static_cast<std::size_t>(count)) fibers.push_back(std::make_unique<Fiber>());
    for (int i = 0; i < count; ++i) {
      Fiber& fiber = *fibers[static_cast<std::size_t>(i)];
      fiber.ended = false;
      fiber.context = new_fiber(fiber.stack.bottom(), kStackBytes, &State::start, this);
    }
  }
};

Fibers::Fibers() : state_(std::make_unique<State>()) {}
Fibers::~Fibers() = default;

bool Fibers::run(int count, const std::function<void(int)>& entry, const std::function<void(int)>& turn,
                 const std::function<bool()>& stuck) {
  state_->entry = &entry;
  state_->prepare(count);
  for (int left = count; left > 0;) {
    for (int i = 0; i < count; ++i) {
      Fiber& fiber = *state_->fibers[static_cast<std::size_t>(i)];
      if (fiber.ended) continue;
      state_->current = i;
      turn(i);
      switch_fiber(state_->home, fiber.context);
      left -= fiber.ended ? 1 : 0;
    }
    if (left > 0 && stuck()) return false;
  }
  return true;
}

void Fibers::pause() { switch_fiber(state_->fibers[static_cast<std::size_t>(state_->current)]->context, state_->home); }

}  // namespace tessera::sim
