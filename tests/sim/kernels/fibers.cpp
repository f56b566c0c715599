// SPDX-License-Identifier: Apache-2.0
#include "fibers.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tessera::sim {

FiberStack::FiberStack()
    : memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
  if (memory_ == MAP_FAILED ||
      ::mprotect(memory_, static_cast<std::size_t>(::getpagesize()), PROT_NONE) != 0) {
    std::perror("simulated GPU: no memory for the stack of a kernel's thread");
    std::abort();
  }
}

FiberStack::~FiberStack() { ::munmap(memory_, bytes); }

void Fibers::prepare(int count, const std::function<void(int)>& entry) {
  entry_ = &entry;
  count_ = left_ = count;
  while (fibers_.size() < static_cast<std::size_t>(count))
    fibers_.push_back(std::make_unique<Fiber>());
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = *fibers_[static_cast<std::size_t>(i)];
    fiber.ended = false;
    fiber.context = new_fiber(fiber.stack.bottom(), FiberStack::bytes, &Fibers::start, this);
  }
}

void Fibers::start(void* self) {
  auto* const fibers = static_cast<Fibers*>(self);
  Fiber& fiber = *fibers->fibers_[static_cast<std::size_t>(fibers->current_)];
  (*fibers->entry_)(fibers->current_);
  fiber.ended = true;
  --fibers->left_;
  fibers->pause();
  std::abort();  // an ended fiber gets no turn
}

}  // namespace tessera::sim
