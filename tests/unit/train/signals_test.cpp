// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/signals.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tessera::train {
namespace {

/// What a process ends with that does this; 0 if it comes to its end.
int code_of(const std::function<void()>& life) {
  const pid_t child = fork();
  if (child == 0) {
    life();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// To the process, as users and Slurm do. A thread of the guard takes it.
void send(int signal) {
  kill(getpid(), signal);
  usleep(50'000);
  for (int i = 0; SignalGuard::received() == 0 && i < 1000; ++i) usleep(10'000);
}

void wait_for_another_wish() { usleep(1'100'000); }

/// Ends the process with code 1 if it is still there after ten seconds.
void wait_for_the_end() {
  sleep(10);
  _exit(1);
}

TEST(Signals, TheFirstIsRememberedAndWhatComesAtOnceIsTheSameWish) {
  EXPECT_EQ(code_of([] {
              const SignalGuard guard;
              send(SIGTERM);
              send(SIGINT);
              if (SignalGuard::received() != SIGTERM) _exit(1);
            }),
            0);
}

TEST(Signals, ASecondOneEndsTheProcess) {
  for (const auto& [signal, code] :
       {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}, {SIGUSR2, 143}})
    EXPECT_EQ(code_of([signal = signal] {
                const SignalGuard guard;
                send(SIGUSR1);
                wait_for_another_wish();
                send(signal);
                wait_for_the_end();
              }),
              code);
}

TEST(Signals, TheFirstOneIsAnsweredAtOnceAndOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(code_of([&] {
              dup2(ends[1], STDERR_FILENO);
              const SignalGuard guard;
              SignalGuard::answer_with("saving after this step\n");
              send(SIGTERM);
              send(SIGTERM);
            }),
            0);
  close(ends[1]);
  char text[100];
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(read(ends[0], text, sizeof(text)))),
            "saving after this step\n");
  close(ends[0]);
}

TEST(Signals, WhatWasDecidedStays) {
  EXPECT_EQ(code_of([] {
              const SignalGuard guard;
              SignalGuard::decide(75);
              send(SIGTERM);
              wait_for_another_wish();
              send(SIGTERM);
              wait_for_the_end();
            }),
            75);
}

TEST(Signals, AGuardInsideAnotherChangesNothing) {
  EXPECT_EQ(code_of([] {
              const SignalGuard outer;
              send(SIGTERM);
              { const SignalGuard inner; }
              if (SignalGuard::received() != SIGTERM) _exit(1);
              send(SIGTERM);
            }),
            0);
  EXPECT_EQ(code_of([] {
              { const SignalGuard guard; }
              raise(SIGTERM);
            }),
            128 + SIGTERM);
}

#ifdef __x86_64__

/// Waits for `flag` with the stack pointer at `stack`, as oneDNN's products do before 3.12.
void wait_with_stack_at(char* stack, const std::atomic<int>& flag) {
  asm volatile(
      "mov %%rsp, %%r12\n\t"
      "mov %[stack], %%rsp\n\t"
      "1: pause\n\t"
      "cmpl $0, (%[flag])\n\t"
      "je 1b\n\t"
      "mov %%r12, %%rsp"
      :
      : [stack] "r"(stack), [flag] "r"(&flag)
      : "r12", "memory", "cc");
}

TEST(Signals, NoHandlerWritesBelowTheStackPointerOfAThreadThatComputes) {
  EXPECT_EQ(code_of([] {
              const SignalGuard guard;
              std::vector<char> heap(1 << 16);
              std::atomic<int> seen{0};
              std::thread sender([&] {
                send(SIGUSR1);
                seen = 1;
              });
              wait_with_stack_at(heap.data() + heap.size(), seen);
              sender.join();
              if (SignalGuard::received() != SIGUSR1) _exit(2);
              if (std::ranges::any_of(heap, [](char c) { return c != 0; })) _exit(1);
            }),
            0);
}

#endif

}  // namespace
}  // namespace tessera::train
