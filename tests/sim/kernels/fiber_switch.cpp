// SPDX-License-Identifier: Apache-2.0
#include "fiber_switch.hpp"

#if defined(__x86_64__)

#include <cstdint>

// A call: the caller has saved what the ABI (System V, AMD64) lets a function change, so that the
// six other registers and the stack pointer are all there is to a context. Floating-point control
// words are the same for all fibers.
extern "C" void tessera_sim_switch_stacks(void** from, void* to);
extern "C" void tessera_sim_start_fiber();
asm(R"(
.text
.globl tessera_sim_switch_stacks
.hidden tessera_sim_switch_stacks
.type tessera_sim_switch_stacks, @function
tessera_sim_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tessera_sim_switch_stacks, .-tessera_sim_switch_stacks

.globl tessera_sim_start_fiber
.hidden tessera_sim_start_fiber
.type tessera_sim_start_fiber, @function
tessera_sim_start_fiber:
  subq $8, %rsp
  movq %r12, %rdi
  callq *%rbx
  ud2
.size tessera_sim_start_fiber, .-tessera_sim_start_fiber
)");

namespace tessera::sim {

FiberContext new_fiber(void* bottom, std::size_t bytes, void (*start)(void*), void* argument) {
  auto* const top = reinterpret_cast<std::uint64_t*>(static_cast<char*>(bottom) + bytes);
  // r15 r14 r13 r12 rbx rbp, the return address, and a word that aligns the end
  std::uint64_t* const frame = top - 8;
  for (int i = 0; i < 8; ++i) frame[i] = 0;
  frame[3] = reinterpret_cast<std::uint64_t>(argument);
  frame[4] = reinterpret_cast<std::uint64_t>(start);
  frame[6] = reinterpret_cast<std::uint64_t>(&tessera_sim_start_fiber);
  return {frame, nullptr};
}

void switch_fiber(FiberContext& from, FiberContext& to) {
  tessera_sim_switch_stacks(&from.stack_pointer, to.stack_pointer);
}

}  // namespace tessera::sim

#else

#include <ucontext.h>

#include <cstdint>

namespace tessera::sim {
namespace {

ucontext_t& context_of(FiberContext& fiber) {
  if (!fiber.registers) fiber.registers = std::make_shared<ucontext_t>();
  return *static_cast<ucontext_t*>(fiber.registers.get());
}

/// makecontext passes integers: both pointers come in halves.
void start_from_halves(unsigned start_high, unsigned start_low, unsigned argument_high,
                       unsigned argument_low) {
  const auto whole = [](unsigned high, unsigned low) { return std::uint64_t{high} << 32 | low; };
  reinterpret_cast<void (*)(void*)>(whole(start_high, start_low))(
      reinterpret_cast<void*>(whole(argument_high, argument_low)));
}

}  // namespace

FiberContext new_fiber(void* bottom, std::size_t bytes, void (*start)(void*), void* argument) {
  FiberContext fiber;
  ucontext_t& context = context_of(fiber);
  ::getcontext(&context);
  context.uc_stack.ss_sp = bottom;
  context.uc_stack.ss_size = bytes;
  const auto code = reinterpret_cast<std::uint64_t>(start),
             data = reinterpret_cast<std::uint64_t>(argument);
  ::makecontext(&context, reinterpret_cast<void (*)()>(&start_from_halves), 4,
                static_cast<unsigned>(code >> 32), static_cast<unsigned>(code),
                static_cast<unsigned>(data >> 32), static_cast<unsigned>(data));
  return fiber;
}

void switch_fiber(FiberContext& from, FiberContext& to) {
  ::swapcontext(&context_of(from), &context_of(to));
}

}  // namespace tessera::sim

#endif
